"""Files of the open scenario: saving, reloading, recovery, export and the editor."""
