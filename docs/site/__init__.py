"""Generated pages of the documentation site, and hooks of MkDocs."""
