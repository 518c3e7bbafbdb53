"""Files written by the program: TOML with its comments kept, tables, data sets, reports."""
