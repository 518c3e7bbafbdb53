"""The command line: one module a verb, each importing what it needs when it runs."""
