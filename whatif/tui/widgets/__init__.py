"""Widgets of the explorer: small, typed, drawn line by line."""
