"""Terminal and process of the explorer: graphics, signals, memory, start."""
