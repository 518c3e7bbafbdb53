"""Windows above the main screen, and the questions that they ask one after the other."""
