"""How each kind of phase becomes terms: one module a kind."""
