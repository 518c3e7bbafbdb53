"""whatif: a declarative what-if explorer for HPC machines and applications."""

__version__ = "0.1.0"
