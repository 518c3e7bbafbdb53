"""Pictures as data, and their backends: terminal cells and matplotlib."""
