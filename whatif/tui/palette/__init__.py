"""The palette: everything that has a name, found by words."""
