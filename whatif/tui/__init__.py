"""The terminal explorer: the only room that knows Textual."""
