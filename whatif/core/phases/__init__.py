"""Terms of phases: one module for each kind."""
