"""Edited scenarios as files and commands: phases, saving, patches, differences, templates of new files, the editor."""

from whatif.files.editors import FilePlace, editor_command, place_of
from whatif.files.file_copies import copy_file
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
from whatif.files.variant_files import own_folder, variant_paths, write_variants
from whatif.schema.motifs import Motif, motif_named, motifs, phase_files, phases_of, source_name
from whatif.schema.phase_edits import EditedDocument, PhaseEdit, edited, free_phase_name
from whatif.schema.phase_kinds import phase_kinds

__all__ = [
    "ChangedOnDiskError",
    "EditedDocument",
    "FilePlace",
    "Motif",
    "PhaseEdit",
    "command_line",
    "copy_file",
    "difference",
    "edited",
    "editor_command",
    "free_phase_name",
    "motif_named",
    "motifs",
    "own_folder",
    "phase_files",
    "phase_kinds",
    "phases_of",
    "place_of",
    "save",
    "save_as",
    "scenario_words",
    "source_name",
    "template",
    "toml_patch",
    "variant_paths",
    "write_variants",
]
