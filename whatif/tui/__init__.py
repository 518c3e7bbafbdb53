"""The terminal explorer: the only package that imports Textual."""

import os

# Textual draws at most 60 frames a second unless told otherwise: a key press would wait up to 16 ms for the next one.
os.environ.setdefault("TEXTUAL_FPS", "120")
