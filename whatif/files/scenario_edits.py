"""Overrides written into a scenario file, and shown as a patch or as a command line."""

from __future__ import annotations

import codecs
import difflib
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from whatif.atomic import write_text
from whatif.axes import Axis
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.files.file_copies import copy_named_runs, with_schema
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.schema.phase_edits import EditedDocument, on_disk
from whatif.schema.rewriting import rewritten
from whatif.schema.shipped import NAME_RULE, is_name, is_shipped
from whatif.schema.toml import FORMAT_LINE, MAXIMUM_FILE_SIZE, Document, parse_document, read_document
from whatif.schema.toml_text import comment_line, toml_text, toml_value


class ChangedOnDiskError(UsageError):
    """File changed on disk since it was read: writing it would undo that change."""


def save(path: Path, document: Document, scenario: Scenario) -> Document:
    """Document of the scenario's file after its overrides were written into it.

    The new text is loaded first and must give the same parameters. Raise `UsageError` if it does not or the file cannot
    be written, `ChangedOnDiskError` if the file is no longer `document`; then nothing is changed.
    """
    text = rewritten(document, scenario.overrides, scenario.platform, scenario.folders)
    verify(path, document, text, scenario)
    put_text(path, on_disk(document), text)
    # By the name it was opened under: a link may be in another folder than its file.
    return replace(read_document(path), name=document.name, folder=document.folder)


def save_as(path: Path, scenario: Scenario) -> str:
    """Write a scenario's file with its overrides to another path, whole or not at all; remark on its measured runs.

    Their file is copied next to it, unless one of that name exists.
    The new file must load there and give the same parameters. Raise `UsageError` if it does not, such as for a file
    that extends one in its folder or has the name of its platform, or cannot be written.
    """
    layers = scenario.program.loaded.layers.items
    if path.stem in {Path(layer.document.name).stem for layer in layers if layer.at}:
        raise UsageError(f"{path}: not saved: `{path.stem}` is a platform or part of the scenario; give another name")
    document = replace(scenario.document, folder=path.parent)
    text = rewritten(scenario.document, scenario.overrides, scenario.platform, scenario.folders)
    text = with_schema(text, scenario.document.folder, path.parent)
    verify(path, document, text, scenario)
    remark = copy_named_runs(scenario.program.loaded.scenario.runs, scenario.document.folder, path.parent)
    write_text(path, text)
    return remark


def put_text(path: Path, document: Document, text: str) -> None:
    """Write a new text into the file that a document was read from, whole or not at all.

    Raise `ChangedOnDiskError` if the file is no longer `document`, `UsageError` if it cannot be written.
    """
    try:
        old, mode = path.read_bytes(), path.stat().st_mode
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    mark = codecs.BOM_UTF8 if old.startswith(codecs.BOM_UTF8) else b""
    if old != mark + document.text.encode():
        raise ChangedOnDiskError(f"{path}: not saved: the file has changed on disk since it was read")
    if not mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        raise UsageError(f"{path}: not saved: the file is read-only")
    if text != document.text:
        write_text(path, mark.decode() + text)


def difference(old: str, new: str, name: str) -> str:
    """Unified diff of two texts of a file; empty if they are equal."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def toml_patch(scenario: Scenario, axes: Sequence[Axis], base: tuple[str, Scenario] | None = None) -> str:
    """Scenario file with the overrides and sweep of a scenario, which extends the original file in the same folder.

    `base` is another such file that is extended instead, by its name, with the overrides that it has already. Raise
    `UsageError` if the name of the file cannot be extended.
    """
    document = _saved(scenario)
    name = extended_name(document) if base is None else base[0]
    known = {} if base is None else base[1].overrides
    head = f"{comment_line(f'Variant of {name}.')}\n{FORMAT_LINE}\nextends = {toml_value(name)}\n"
    if scenario.platform is not None and base is None:
        head += f"platform = {toml_value(scenario.platform)}\n"
    sets = {path: text for path, text in scenario.overrides.items() if path not in known}
    text = rewritten(parse_document(head, "the patch", document.folder), sets, None, scenario.folders)
    sweep: dict[str, Mapping[str, str]] = {}
    for axis in axes:
        # An axis may be named after its parameter, but a table of the sweep has a plain name.
        key = axis.name.rpartition(".")[2]
        sweep[key if key not in sweep else f"{key}_{len(sweep) + 1}"] = axis.texts
    # Without a sweep a scenario inherits that of the one it extends.
    return f"{text}\n" + (toml_text({"sweep": sweep}) if sweep else "[sweep]\n")


def extended_name(document: Document) -> str:
    """Name by which a file in the same folder extends a document; raise `UsageError` if it has none."""
    name = Path(document.name).stem
    if not is_name(name) or Path(document.name).name != f"{name}.toml":
        raise UsageError(f"{document.name}: cannot be extended by name: {NAME_RULE}, and ends with .toml")
    return name


def command_line(scenario: Scenario, axes: Sequence[Axis]) -> str:
    """Command that evaluates a scenario over some axes, quoted for a shell."""
    words = ["whatif", "run", *scenario_words(scenario)]
    return shlex.join([*words, *(sweep_words(axes) if axes else ["--point"])])


def sweep_words(axes: Sequence[Axis]) -> Iterator[str]:
    """Words of a sweep on a command line."""
    for axis in axes:
        yield from ("--sweep", "; ".join(f"{path}={text}" for path, text in axis.texts.items()))


def scenario_words(scenario: Scenario, *, machine: bool = True) -> list[str]:
    """Words of a scenario on a command line; without `machine` the platform is left out."""
    document = _saved(scenario)
    words = [Path(document.name).stem if is_shipped(document.folder, "scenarios") else document.name]
    if machine and scenario.platform is not None:
        words += ["--platform", scenario.platform]
    for folder in scenario.folders:
        words += ["--platform-dir", str(folder)]
    return [*words, *set_words(scenario.overrides)]


def set_words(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Words of overrides on a command line; `--set` reads truth values in small letters."""
    for path, value in overrides.items():
        yield from ("--set", f"{path}={str(value).lower() if isinstance(value, bool) else value}")


def _saved(scenario: Scenario) -> Document:
    """Document of a scenario; raise `UsageError` for phases that no command line and no patch can state."""
    if isinstance(scenario.document, EditedDocument):
        raise UsageError(f"{scenario.document.name}: its phases are edited; save them to a file first")
    return scenario.document


def verify(path: Path, document: Document, text: str, scenario: Scenario) -> None:
    """Raise `UsageError` for a text that does not give exactly the parameters of a scenario."""
    try:
        if len(text.encode()) > MAXIMUM_FILE_SIZE:
            raise UsageError(f"{path}: not saved: it would be larger than {MAXIMUM_FILE_SIZE // 1000} kB")
        read = parse_document(text, document.name, document.folder)
        found = Scenario(read, folders=scenario.folders).program.parameters
    except (InvalidFileError, UnicodeEncodeError) as error:
        raise UsageError(f"{path}: not saved: the file would not load any more: {error}") from None
    wanted = scenario.program.parameters
    for parameter in dict.fromkeys([*wanted, *found]):
        if _said(found.get(parameter)) != _said(wanted.get(parameter)):
            written, meant = (table[parameter].text() if parameter in table else "missing" for table in (found, wanted))
            raise UsageError(f"{path}: not saved: `{parameter}` would be {written} instead of {meant}")


def _said(parameter: Parameter | None) -> Any:
    """Value of a parameter, for comparison."""
    if parameter is None:
        return None
    value = parameter.value.text if isinstance(parameter.value, Expression) else parameter.value
    known = parameter.distribution
    distribution = None if known is None else (known.kind, known.numbers)
    return (value.strip() if isinstance(value, str) else value), parameter.dimension, distribution
