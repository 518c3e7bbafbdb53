"""High Performance Linpack, step by step: the arrival times of every message on every process (Cornebize et al. 2019)."""
