"""Comparison of the models with published measurements and other simulators."""
