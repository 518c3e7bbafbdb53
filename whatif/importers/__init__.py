"""Files of other programs as tables: one module a format, `parse_` on text, `read_` on a path or a text."""
