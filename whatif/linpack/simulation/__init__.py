"""High Performance Linpack, step by step: when every message reaches every process (Cornebize et al. 2019)."""
