"""Measurements: reading files of other programs, and fitting platforms and models to them."""
