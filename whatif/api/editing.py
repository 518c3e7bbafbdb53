"""Edited scenarios as files and commands: saving, patches, differences, and templates of new files."""

from whatif.files.scenario_edits import (
    ChangedOnDiskError,
    command_line,
    difference,
    save,
    save_as,
    scenario_words,
    template,
    toml_patch,
)
from whatif.files.variant_files import variant_paths, write_variants

__all__ = [
    "ChangedOnDiskError",
    "command_line",
    "difference",
    "save",
    "save_as",
    "scenario_words",
    "template",
    "toml_patch",
    "variant_paths",
    "write_variants",
]
