"""Benchmarks: ratios against a named alternative, measured in one run; `make bench` prints them as a table."""
