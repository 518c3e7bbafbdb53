"""The questions of the page `decide`: functions that run beside, each with one small answer."""
