"""Studies: a question about one or several scenarios in, a result with its table and picture out."""
