"""Edited scenarios as files and commands: phases, saving, patches, differences, and templates of new files."""

from whatif.files.scenario_edits import (
    ChangedOnDiskError,
    command_line,
    difference,
    save,
    save_as,
    scenario_words,
    toml_patch,
)
from whatif.files.scenario_template import template
from whatif.schema.motifs import Motif, motif_named, motifs, phases_of
from whatif.schema.phase_edits import EditedDocument, PhaseEdit, added_names, edited
from whatif.schema.phase_kinds import phase_kinds

__all__ = [
    "ChangedOnDiskError",
    "EditedDocument",
    "Motif",
    "PhaseEdit",
    "added_names",
    "command_line",
    "difference",
    "edited",
    "motif_named",
    "motifs",
    "phase_kinds",
    "phases_of",
    "save",
    "save_as",
    "scenario_words",
    "template",
    "toml_patch",
]
