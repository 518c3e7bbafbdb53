"""Plots as files."""

from whatif.files.plot_files import SCRIPT, write_plot

__all__ = ["SCRIPT", "write_plot"]
