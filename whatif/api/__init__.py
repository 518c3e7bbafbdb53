"""Public library: one typed function per verb of the command line; the only door of both front ends."""
