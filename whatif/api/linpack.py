"""Predictions of High Performance Linpack, and the search for its best parameters."""
