"""The term engine: a scenario becomes a short list of terms, and one evaluator answers every question about it."""
