"""Scenarios and platforms: building, checking, listing and resolving them."""
