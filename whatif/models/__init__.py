"""Published performance models as pure, broadcasting numpy functions: one module a model family."""
