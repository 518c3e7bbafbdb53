"""Loading of scenarios and platforms by name or path: find, read, extend, merge, validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from whatif.errors import InvalidFileError, Problem, did_you_mean
from whatif.paths import is_file, is_folder
from whatif.schema.not_found import absent, other_kind, shipped_as_other
from whatif.schema.parts import extended_tables, part_layer, part_model, placed, without_extends
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.removal import without_removed
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.shipped import (
    MAXIMUM_CHAIN,
    NAME_RULE,
    SINGULARS,
    find,
    is_name,
    is_platform,
    kind_of,
    looks_like_platform,
    names_in,
)
from whatif.schema.toml import (
    Document,
    KeyPath,
    Layer,
    Layers,
    dotted,
    key_path,
    parse_document,
    read_document,
    tables_around,
    walk,
)
from whatif.schema.validated import PLATFORM, validate

# Overrides are texts; these two are booleans in TOML.
_SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True)
class Loaded:
    """A validated scenario with the layers it was merged from."""

    scenario: ScenarioSpec
    layers: Layers
    name: str
    question: str
    search: tuple[Path, ...]
    """Folders to search for platforms and parts, without the shipped ones: that of the file is the first."""


def load_document(
    document: Document,
    *,
    platform: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    folders: Sequence[Path] = (),
    built: Mapping[str, Document] | None = None,
) -> Loaded:
    """Scenario of a document; `platform` replaces the one it states, `built` are platforms without a file.

    Raise `InvalidFileError` with every problem of the files, each with file, line, column and key.
    """
    layers = scenario_layers(document, platform=platform, overrides=overrides or {}, folders=folders, built=built or {})
    layers = without_removed(ScenarioSpec, layers)
    scenario = validate(ScenarioSpec, layers)
    return Loaded(scenario, layers, Path(document.name).stem, question_of(document.text), document.search(folders))


def _refuse_other(document: Document, folders: Sequence[Path]) -> None:
    """Raise `InvalidFileError` for a study, a part or a platform in place of a scenario."""
    kind = kind_of(document.data)
    if kind in ("study", "part"):
        raise InvalidFileError([document.problem((), other_kind(kind, "scenario", document.name))])
    if is_platform(document, folders):
        raise InvalidFileError([document.problem((), other_kind("platform", "scenario", document.name))])


def scenario_layers(
    document: Document,
    *,
    platform: str | None,
    overrides: Mapping[str, Any],
    folders: Sequence[Path],
    built: Mapping[str, Document],
) -> Layers:
    """Layers of a scenario: the files of the platform, those of the scenario, and the overrides."""
    search = document.search(folders)
    _refuse_other(document, folders)
    chain = _scenario_chain(document, search)
    stated = _stated_platform(chain)
    base: list[Layer] = []
    if platform or stated:
        name, asking = (platform, Document("--platform", "", {})) if platform else (stated, chain[-1])
        base = [Layer(item, PLATFORM) for item in _platform_chain(str(name), asking, search, built)]
    upper = [Layer(_without_extends(item)) for item in _own_runs(_one_sweep(chain))]
    return Layers.of(_with_parts([*base, *upper, *override_layers(overrides)], search))


def stated_platform(document: Document, folders: Sequence[Path] = ()) -> str | None:
    """Name of the platform stated by a scenario or one that it extends."""
    return _stated_platform(_scenario_chain(document, document.search(folders)))


def stated_values(document: Document, folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """Paths of the platform values stated by a scenario or one that it extends; they apply to any platform."""
    chain = _scenario_chain(document, document.search(folders))
    tables = (_without_extends(item).data.get("platform", {}) for item in chain)
    paths = (path for table in tables for path, _ in walk(table) if path[0] not in ("name", "sources", "fits"))
    return tuple(dict.fromkeys(dotted((*PLATFORM, *path)) for path in paths))


def _stated_platform(chain: Sequence[Document]) -> str | None:
    tables = (item.data.get("platform") for item in reversed(chain))
    names = (_one_name(table.get("extends")) for table in tables if isinstance(table, dict))
    return next((name for name in names if name is not None), None)


def _one_sweep(chain: list[Document]) -> list[Document]:
    """The chain with only the last sweep: the sweep of the extending scenario replaces the one it extends."""
    asking = max((index for index, item in enumerate(chain) if "sweep" in item.data), default=0)
    return [_drop(item, "sweep") if index < asking else item for index, item in enumerate(chain)]


def _own_runs(chain: list[Document]) -> list[Document]:
    """The chain with the runs of the scenario itself: those of one that it extends were measured with its values."""
    return [*(_drop(_drop(item, "runs"), "accuracy") for item in chain[:-1]), chain[-1]]


def load_platform(source: str | Path, folders: Sequence[Path] = ()) -> tuple[PlatformSpec, Layers]:
    """Platform of a path or name, and its layers."""
    return load_platform_document(open_document(source, "platforms", folders), folders)


def load_platform_document(document: Document, folders: Sequence[Path] = ()) -> tuple[PlatformSpec, Layers]:
    """Platform of a document that is already read, and its layers."""
    kind = kind_of(document.data)
    if kind in ("study", "part") or (kind == "scenario" and "application" in document.data):
        raise InvalidFileError([document.problem((), other_kind(kind, "platform", document.name))])
    search = document.search(folders)
    chain = extend_chain(document, "platforms", search)
    merged = Layers.of(_with_parts([Layer(_drop(item, "extends")) for item in chain], search))
    layers = without_removed(PlatformSpec, merged)
    return validate(PlatformSpec, layers), layers


def load_part(source: str | Path, folders: Sequence[Path] = ()) -> BaseModel:
    """Validated part of a path or name."""
    document = open_document(source, "parts", folders)
    return validate(part_model(document), Layers.of([Layer(document)]))


def _kinds_around(layer: Layer, table: KeyPath) -> Iterator[Layer]:
    """Layers with the kinds of the tables around a table that extends a part: without them the part were replaced."""
    document, below = layer.document, layer.document.data
    for length in range(1, len(table)):
        below = below[table[length - 1]]
        if "kind" in below:
            data = tables_around({"kind": below["kind"]}, table[:length])
            yield Layer(replace(document, data=data), layer.at)


def _with_parts(layers: Sequence[Layer], folders: Sequence[Path]) -> list[Layer]:
    """Layers with the parts that their tables extend, each part before the layer that extends it."""
    whole: list[Layer] = []
    problems: list[Problem] = []
    for layer in layers:
        tables = dict(extended_tables(layer))
        for table, name in tables.items():
            try:
                part = part_layer(layer, table, name, layer.document.search(folders))
                _check_part(part.document.text, part.document.name, part.document.folder)
            except InvalidFileError as error:
                problems += error.problems
            else:
                whole += [*_kinds_around(layer, table), *placed(part)]
        whole.append(without_extends(layer, list(tables)) if tables else layer)
    if problems:
        raise InvalidFileError(problems)
    return whole


@lru_cache(maxsize=256)
def _check_part(text: str, name: str, folder: Path | None) -> None:
    """Raise `InvalidFileError` for an invalid part; a valid text is checked once, though many tables extend it."""
    document = parse_document(text, name, folder)
    validate(part_model(document), Layers.of([Layer(document)]))


_EMPTY_PLATFORM: Final = (
    'is empty; `whatif new NAME --gpu GPU` writes a machine, `extends = "dgx_h100"` begins with a shipped one'
)
_EMPTY: Final = "is empty; `whatif new` writes a scenario to begin with, `whatif study --new` a study"


def open_document(source: str | Path, kind: str, folders: Sequence[Path] = (), also: Sequence[str] = ()) -> Document:
    """Document of a path, or of a name in the folders or among the shipped files; it is not empty.

    `also` are further kinds that the caller accepts: a message about a name that is not found suggests them.
    """
    path = Path(source)
    if is_file(path):
        return not_empty(read_document(path))
    name = str(source)
    found = find(name, kind, folders) if is_name(name) else None
    if found is None:
        raise InvalidFileError([Problem(name or "``", 0, 0, "", absent(path, name, kind, folders, also))])
    return read_document(found)


def not_empty(document: Document) -> Document:
    """The document; raise `InvalidFileError` if it has no value."""
    if not document.data:
        raise InvalidFileError([document.problem((), _EMPTY)])
    return document


def extend_chain(document: Document, kind: str, folders: Sequence[Path]) -> list[Document]:
    """Chain of documents that a file extends, base first, itself last; raise for a file that extends itself."""
    chain: list[Document] = [document]
    seen: list[str] = []
    while (name := chain[0].data.get("extends")) is not None:
        seen = seen or [_identity(document)]
        parent = _named(str(_one_name(name)), kind, chain[0].search(folders), chain[0], ("extends",))
        if _identity(parent) in seen or len(chain) > MAXIMUM_CHAIN:
            loop = " -> ".join([*(Path(item.name).stem for item in reversed(chain)), Path(parent.name).stem])
            raise InvalidFileError([chain[0].problem(("extends",), f"extends itself: {loop}")])
        chain.insert(0, parent)
        seen.append(_identity(parent))
    return chain


def _identity(document: Document) -> str:
    return str(Path(document.name).resolve())


def _platform_chain(
    name: str, asking: Document, search: Sequence[Path], built: Mapping[str, Document]
) -> list[Document]:
    document = built.get(name) or _named(name, "platforms", search, asking, PLATFORM)
    return [_drop(item, "extends") for item in extend_chain(document, "platforms", search)]


def _named(name: str, kind: str, folders: Sequence[Path], asking: Document, at: KeyPath) -> Document:
    """Document that another document refers to by name."""
    path = find(name, kind, folders, asking.name) if is_name(name) else None
    if path is not None:
        document = read_document(path)
        if kind == "platforms" and not document.data:
            raise InvalidFileError([document.problem((), _EMPTY_PLATFORM)])
        if kind == "platforms" and kind_of(document.data) == "part":
            raise InvalidFileError([asking.problem(at, f"`{name}` {other_kind('part', 'platform', name)}")])
        if kind == "platforms" and "application" in document.data:
            raise InvalidFileError(
                [asking.problem(at, f"`{name}` {other_kind('scenario', 'platform', document.name)}")]
            )
        if kind == "scenarios" and kind_of(document.data) == "platform" and looks_like_platform(document.data):
            message = f'`{name}` is a platform, not a scenario: `platform = "{Path(document.name).stem}"` uses it'
            raise InvalidFileError([asking.problem(at, message)])
        return document
    other = shipped_as_other(name, SINGULARS[kind])
    reason = f" {other}" if other else f": {SINGULARS[kind]} {_not_found(name, kind, folders)}"
    raise InvalidFileError([asking.problem(at, f"`{name}`{reason}")])


def _not_found(name: str, kind: str, folders: Sequence[Path]) -> str:
    """Reason why a name finds no file, and what may help."""
    known, file = names_in(folders, kind), f"{name}.toml"
    if is_folder(Path(name)):
        reason = "is a folder, not a file"
    elif is_name(name):
        reason = "not found"
    elif several := _several(name, kind, known):
        return several
    elif "/" in name:
        where = "the scenario, or name its folder by --platform-dir" if kind == "platforms" else "this one"
        return f"is named without its folder: put the file next to {where}"
    else:
        near = did_you_mean(name.replace(" ", "_"), known)
        return f"not found{near or f': {NAME_RULE}; rename it'}"
    own = f"; did you mean the file `{file}`?" if is_file(Path(file)) else ""
    hint = own or did_you_mean(name.removesuffix(".toml"), known) or f"; known: {', '.join(known)}"
    return f"{reason}{hint}"


def _several(name: str, kind: str, known: Sequence[str]) -> str:
    """Hint at several names or a pattern in the place of one, and the sweep that takes them; empty for one name."""
    names = [word for word in name.replace(",", " ").split() if "*" in word or word in known]
    sweep = f"; `--sweep 'platform={', '.join(names)}'` takes several" if names and kind == "platforms" else ""
    return f"not found: one name is needed here{sweep}" if names or ", " in name else ""


def override_layers(overrides: Mapping[str, Any]) -> list[Layer]:
    """Layers of overrides by path, each of its own."""
    layers = []
    # A part replaces its whole table, so `extends` goes first and other overrides of the table change the part.
    for path, value in sorted(overrides.items(), key=lambda item: not item[0].endswith(".extends")):
        stated = _SWITCHES.get(value, value) if isinstance(value, str) else value
        layers.append(Layer(Document(f"--set {path}={value}", "", tables_around(stated, key_path(path)))))
    return layers


def _scenario_chain(document: Document, search: Sequence[Path]) -> list[Document]:
    """Scenarios that a file extends, base first, itself last, each with its platform as a table."""
    return [_normalised(item) for item in extend_chain(document, "scenarios", search)]


def _normalised(document: Document) -> Document:
    """Document with `platform = "summit"` written as a table `[platform]` with `extends`."""
    platform = _one_name(document.data.get("platform"))
    if not isinstance(platform, str):
        return document
    return replace(document, data={**document.data, "platform": {"extends": platform}})


def _one_name(value: Any) -> Any:
    """Value of a key that takes one name; several names are one text, which is not found, with a hint."""
    several = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return ", ".join(value) if several else value


def _without_extends(document: Document) -> Document:
    document = _drop(document, "extends")
    platform = document.data.get("platform")
    if not isinstance(platform, dict):
        return document
    rest = {key: value for key, value in platform.items() if key != "extends"}
    return replace(document, data={**document.data, "platform": rest})


def _drop(document: Document, key: str) -> Document:
    return replace(document, data={name: value for name, value in document.data.items() if name != key})


def question_of(text: str) -> str:
    """First sentence of the comment at the top of a scenario: its question."""
    leading = takewhile(lambda line: not line.strip() or line.startswith("#"), text.splitlines())
    lines = (line.removeprefix("#").strip() for line in leading if line.strip())
    words: list[str] = []
    for line in lines:
        if line.startswith(":schema"):
            continue
        words.append(line)
        if line.endswith(("?", ".")):
            break
    return " ".join(words)
