"""Reports: results of a scenario with all inputs, as a self-contained HTML page."""
