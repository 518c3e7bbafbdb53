"""Plot descriptions as data, and their backends: terminal and matplotlib."""
