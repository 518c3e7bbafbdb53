"""Edits written into a scenario file, and the same edits as a scenario of its own or as a command line.

A file is cut at its headers. One section holds no table twice, so that a value is replaced, or a line put in, without
a thought for the order of the tables; every other section stays as it is to the byte.
"""

from __future__ import annotations

import codecs
import difflib
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import tomli

from whatif.axes import Axis
from whatif.engine.result import Question
from whatif.errors import InvalidFileError, UsageError
from whatif.export.atomic import atomic_file
from whatif.export.toml import toml_text
from whatif.schema.expressions import Expression
from whatif.schema.fields import LARGEST_INTEGER
from whatif.schema.leaves import Leaf, leaf_table
from whatif.schema.load import load_document
from whatif.schema.shipped import is_name, shipped_folder
from whatif.schema.toml import MAXIMUM_FILE_SIZE, Document, KeyPath, parse_document, read_document
from whatif.units import ONE

# Where a reader looks for a table that a file has not: before those that come later here.
_ORDER: Final = ("platform", "parameters", "application", "sweep", "sources")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAMED: Final = re.compile(r"""([ \t]*)(["']?)platform\2(?=[ \t]*=)""")

_TEMPLATE: Final = """\
# Where does an iteration of this application spend its time?
#
# `whatif open FILE` explores it, `whatif check FILE` says what is wrong in it; a quantity is text with a unit.

platform = {platform}

[application]
name = {name}
rank_count = 16                 # processes, one for each GPU
iteration_count = 100

# The cells of one rank. With scaling = "strong" they are those of all ranks together.
[application.grid]
scaling = "weak"
cells = {{ x = 4096, y = 4096 }}

# The phases of one iteration, in order. First the ranks exchange the borders of their cells ..
[application.phases.halo]
kind = "halo"
model = "k_model"
neighbours = "faces"            # "all": across the corners as well
element_size = "8 B"
halo_width = 1

# .. then the GPU computes every cell; these numbers come from a profile of the kernel.
[application.phases.update]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "cell"
operations = "6 flop"
dram_size = "17 B"
compute_fraction = 0.14         # shares of all instructions
load_store_fraction = 0.17
"""


class ChangedOnDiskError(UsageError):
    """The file is no longer the one that was read: writing it would undo what somebody else changed."""


def rewritten(
    document: Document, sets: Mapping[str, str], platform: str | None = None, folders: Sequence[Path] = ()
) -> str:
    """The text of a scenario file with other values (leaf path: text as typed) and, if given, another platform.

    Everything else stays as it is, to the byte. Raise `InvalidFileError` for values that the scenario cannot have.
    """
    leaves = leaf_table(load_document(document, platform=platform, sets=sets, folders=folders))
    values = {tuple(path.split(".")): _literal(text, leaves.get(path)) for path, text in sets.items()}
    by_name = isinstance(document.data.get("platform"), str)
    opened = by_name and any(path[0] == "platform" for path in values)
    if platform is not None:
        values = {("platform",) if by_name and not opened else ("platform", "extends"): _quoted(platform), **values}
    try:
        sections = _sections(_with_platform_table(document.text) if opened else document.text)
        for path, literal in values.items():
            _put(sections, path, literal, _newline(document.text))
    except (ValueError, StopIteration):
        raise UsageError(f"{document.name}: written in a way that only an editor can change") from None
    return "".join(section.text for section in sections)


def save(path: Path, document: Document, question: Question) -> Document:
    """Write the changes of a question into its file, and return the file as it then is.

    What would be written is loaded first and must say what the question says. Raise `UsageError` where it does not
    or the file cannot be written, `ChangedOnDiskError` where it is not `document` any more; then nothing is changed.
    """
    text = rewritten(document, question.sets, question.platform, question.folders)
    data = _verified(path, document, text, question)
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
        with atomic_file(path) as temporary:
            temporary.write_bytes(mark + data)
    # By the name it was opened under: a link may stand in another folder than its file, with other files beside it.
    return replace(read_document(path), name=document.name, folder=document.folder)


def difference(old: str, new: str, name: str) -> str:
    """What changes between two texts of a file, as a unified diff; empty where they are equal."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def toml_patch(question: Question, axes: Sequence[Axis]) -> str:
    """A question and what it sweeps as a scenario that extends the question's file by name; to be put beside it.

    Raise `UsageError` where the file's name is not one that can be extended.
    """
    document = question.document
    name = Path(document.name).stem
    if not is_name(name) or Path(document.name).name != f"{name}.toml":
        wanted = "its file must be NAME.toml with letters, digits, `_` and `-` in NAME"
        raise UsageError(f"{document.name}: cannot be extended by name; {wanted}")
    head = f"# What if {name} were changed like this?\n\nextends = {_quoted(name)}\n"
    if question.platform is not None:
        head += f"platform = {_quoted(question.platform)}\n"
    text = rewritten(parse_document(head, "the patch", document.folder), question.sets, None, question.folders)
    sweep: dict[str, Mapping[str, str]] = {}
    for axis in axes:
        # An axis may be named after its leaf, but a table of the sweep has a plain name.
        key = axis.name.rpartition(".")[2]
        sweep[key if key not in sweep else f"{key}_{len(sweep) + 1}"] = axis.texts
    # Without a sweep of its own a scenario inherits that of the one it extends.
    return f"{text}\n" + (toml_text({"sweep": sweep}) if sweep else "[sweep]\n")


def command_line(question: Question, axes: Sequence[Axis]) -> str:
    """The command that evaluates a question over what it sweeps, quoted for a shell."""
    document = question.document
    shipped = document.folder is not None and document.folder.resolve() == shipped_folder("scenarios").resolve()
    words = ["whatif", "run", Path(document.name).stem if shipped else document.name]
    if question.platform is not None:
        words += ["--platform", question.platform]
    for folder in question.folders:
        words += ["--platforms", str(folder)]
    for path, text in question.sets.items():
        words += ["--set", f"{path}={text}"]
    for axis in axes:
        words += ["--sweep", "; ".join(f"{path}={text}" for path, text in axis.texts.items())]
    return shlex.join(words if axes else [*words, "--point"])


def template(name: str, platform: str) -> str:
    """A small scenario to start from: an application of that name with a grid, a halo and a kernel on a platform."""
    return _TEMPLATE.format(name=_quoted(name), platform=_quoted(platform))


def _verified(path: Path, document: Document, text: str, question: Question) -> bytes:
    """The bytes of a text that loads to exactly the leaves of a question; raise `UsageError` for any other."""
    try:
        data = text.encode()
        if len(data) > MAXIMUM_FILE_SIZE:
            raise UsageError(f"{path}: not saved: it would be larger than {MAXIMUM_FILE_SIZE // 1000} kB")
        read = parse_document(text, document.name, document.folder)
        found = Question(read, folders=question.folders).program.leaves
    except (InvalidFileError, UnicodeEncodeError) as error:
        raise UsageError(f"{path}: not saved: the file would not load any more: {error}") from None
    wanted = question.program.leaves
    for leaf in dict.fromkeys([*wanted, *found]):
        if _said(found.get(leaf)) != _said(wanted.get(leaf)):
            said, meant = (table[leaf].text() if leaf in table else "missing" for table in (found, wanted))
            raise UsageError(f"{path}: not saved: `{leaf}` would be {said} instead of {meant}")
    return data


def _said(leaf: Leaf | None) -> Any:
    """What a leaf says, to be compared."""
    if leaf is None:
        return None
    value = leaf.value.text if isinstance(leaf.value, Expression) else leaf.value
    return (value.strip() if isinstance(value, str) else value), leaf.dimension


def _literal(text: str, leaf: Leaf | None) -> str:
    """A typed value as TOML: numbers without a unit and `true` or `false` as such, all else as text."""
    text = text.strip()
    number = leaf is not None and not leaf.structural and leaf.dimension == ONE and _NUMBER.fullmatch(text)
    # Beyond 2^53 a TOML number is refused where a text is not.
    if text in ("true", "false") or (number and abs(float(text)) <= LARGEST_INTEGER):
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    import tomlkit

    return tomlkit.string(text).as_string()


@dataclass(frozen=True)
class _Section:
    """A header with the comments above it and the values below it; the first section of a file has no header."""

    path: KeyPath
    text: str

    def depth(self, path: KeyPath) -> int:
        """How many keys of a path lead somewhere in this section; none where the path is not below its header."""
        value: Any = tomli.loads(self.text) if path[: len(self.path)] == self.path else None
        for depth, key in enumerate(path):
            if not isinstance(value, dict) or key not in value:
                return depth
            value = value[key]
        return len(path)


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; TOML knows no other end than the line feed."""
    return re.split(r"(?<=\n)", text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _is_comment(line: str) -> bool:
    """Whether a line before a header, or at the end of a section, is a comment and not the end of a long text."""
    return line.lstrip().startswith("#") and '"""' not in line and "'''" not in line


def _sections(text: str) -> list[_Section]:
    """A file cut at its headers."""
    lines = _lines(text)
    headers: list[int] = []
    for row, line in enumerate(lines):
        # Within an array or a text of several lines, what stands before the line is no TOML by itself.
        if line.lstrip().startswith("[") and _is_toml(lines[headers[-1] if headers else 0 : row]):
            headers.append(row)
    starts = [0, *(_first_comment(lines, row) for row in headers)]
    ends = [*starts[1:], len(lines)]
    paths = [(), *(_path(lines[row]) for row in headers)]
    return [_Section(path, "".join(lines[start:end])) for path, start, end in zip(paths, starts, ends, strict=True)]


def _is_toml(lines: list[str]) -> bool:
    try:
        tomli.loads("".join(lines))
    except tomli.TOMLDecodeError:
        return False
    return True


def _path(header: str) -> KeyPath:
    """The table that a header opens."""
    path: KeyPath = ()
    value: Any = tomli.loads(header)
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        path = (*path, key)
    return path


def _first_comment(lines: list[str], header: int) -> int:
    """The first line of the comment right above a header; what a file begins with is about the file."""
    first = header
    while first > 0 and _is_comment(lines[first - 1]):
        first -= 1
    return first or header


def _with_platform_table(text: str) -> str:
    """The text with `platform = "NAME"` as a table, so that values can be added to it.

    Keys that follow it on its level would fall into a `[platform]`; before such it becomes `platform.extends`.
    """
    newline, (top, *tables) = _newline(text), _sections(text)
    lines = _lines(top.text)
    found = ((row, _NAMED.match(line)) for row, line in enumerate(lines) if _is_toml(lines[:row]))
    row, named = next((row, match) for row, match in found if match)
    indent, value = named[1], lines[row][named.end() :]
    if any(line.strip() and not _is_comment(line) for line in lines[row + 1 :]):
        lines[row] = f"{indent}platform.extends{value}"
    else:
        gap = newline if row and lines[row - 1].strip() and not _is_comment(lines[row - 1]) else ""
        lines[row] = f"{gap}{indent}[platform]{newline}{indent}extends{value}"
    return "".join([*lines, *(table.text for table in tables)])


def _put(sections: list[_Section], path: KeyPath, literal: str, newline: str) -> None:
    """Put a value where the file states it, else into its table, else into a new table."""
    depths = [section.depth(path) for section in sections]
    depth = max(depths)
    at = depths.index(depth)
    section = sections[at]
    # A table that is deeper than its section's header is an inline one, or one of dotted keys.
    if depth >= len(path) - 1 or depth > len(section.path):
        sections[at] = _Section(section.path, _edited(section, path, depth, literal, newline))
        return
    at = _place(sections, path[:-1])
    header = f"[{'.'.join(path[:-1])}]"
    above = _gap("".join(item.text for item in sections[:at]), newline)
    below = newline if at < len(sections) else ""
    sections.insert(at, _Section(path[:-1], f"{above}{header}{newline}{path[-1]} = {literal}{newline}{below}"))


def _edited(section: _Section, path: KeyPath, depth: int, literal: str, newline: str) -> str:
    """The text of a section with a value in a table that it has; `depth` keys of the path are there."""
    import tomlkit
    from tomlkit.items import InlineTable

    document: Any = tomlkit.parse(section.text)
    tables = [document]
    for key in path[: min(depth, len(path) - 1)]:
        tables.append(tables[-1][key])
    table = tables[-1]
    if depth == len(path):
        table[path[-1]] = tomlkit.value(literal)
    elif any(isinstance(item, InlineTable) for item in tables):
        for key in reversed(path[depth + 1 :]):
            literal = f"{{ {key} = {literal} }}"
        _fill(table, path[depth], tomlkit.value(literal))
    else:
        return _with_line(section.text, f"{'.'.join(path[len(section.path) :])} = {literal}{newline}", newline)
    return tomlkit.dumps(document)


def _fill(table: Any, key: str, value: Any) -> None:
    """Add to an inline table, with the space before its brace behind the new value."""
    padded = table.as_string().endswith(" }")
    value.trivia.trail = " " if padded else ""
    # Each way of adding puts the space before the value right where the other one does not.
    if padded or not table:
        table[key] = value
    else:
        table.append(key, value)


def _with_line(text: str, line: str, newline: str) -> str:
    """A section with one more line behind its last value, indented like that."""
    lines = _lines(text)
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or _is_comment(lines[end - 1])):
        end -= 1
    last = lines[end - 1]
    indent = last[: len(last) - len(last.lstrip())]
    gap = "" if last.endswith("\n") else newline
    return f"{''.join(lines[:end])}{gap}{indent}{line}{''.join(lines[end:])}"


def _place(sections: list[_Section], table: KeyPath) -> int:
    """Where a new table belongs: before the tables in it, else behind those beside it, else in the usual order."""
    inside = [at for at, section in enumerate(sections) if section.path[: len(table)] == table]
    if inside:
        return inside[0]
    for length in range(len(table) - 1, 0, -1):
        beside = [at for at, section in enumerate(sections) if section.path[:length] == table[:length]]
        if beside:
            return beside[-1] + 1
    later = {(key,) for key in _ORDER[_ORDER.index(table[0]) + 1 :]}
    return next((at for at, section in enumerate(sections) if section.path[:1] in later), len(sections))


def _gap(text: str, newline: str) -> str:
    """What ends a text with an empty line."""
    if not text or re.search(r"(?:\A|\n)[ \t]*\r?\n\Z", text):
        return ""
    return newline if text.endswith("\n") else newline * 2
