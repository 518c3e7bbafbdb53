"""Edited scenarios as files and commands: saving, patches, differences, templates of new files, the editor."""

from whatif.files.editors import Place, editor_command, place_of
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
    "Place",
    "command_line",
    "difference",
    "editor_command",
    "place_of",
    "save",
    "save_as",
    "scenario_words",
    "template",
    "toml_patch",
    "variant_paths",
    "write_variants",
]
