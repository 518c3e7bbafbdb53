"""Plots as files."""

from whatif.files.plot_files import write_plot

__all__ = ["write_plot"]
