"""Terms, compilation and evaluation of scenarios over grids of parameters."""
