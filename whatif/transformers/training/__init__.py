"""Training of transformers: steps, their memory, and the search over plans."""
