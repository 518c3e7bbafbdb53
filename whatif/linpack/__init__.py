"""High Performance Linpack: its phase, its simulation, and its files."""
