"""Measurements of the machine that the program runs on, as tables."""
