"""Variants of a scenario: their values, commands and curves."""
