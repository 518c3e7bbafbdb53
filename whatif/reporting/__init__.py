"""Report about one scenario: its answer and all inputs as a self-contained HTML page."""
