"""Message-level simulation: traces, their replay on a machine, and patterns that need no trace."""
