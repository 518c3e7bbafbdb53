"""What a verb is given: a scenario, or a trace or a profile that stands for one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from whatif.cli.options import open_question, parse_sets

if TYPE_CHECKING:
    from whatif.engine.result import Question
    from whatif.schema.toml import Document

Kind = Literal["scenario", "trace", "profile"]
DEFAULT_PLATFORM: Final = "summit"
"""The machine that a trace or a profile is put on where nobody names one."""


class Source(NamedTuple):
    """A question, what it was made from, and where that is."""

    question: Question
    kind: Kind
    path: Path | None = None


def open_source(
    source: str, platform: str | None, folders: tuple[Path, ...], sets: tuple[str, ...], model: str | None = None
) -> Source:
    """The question that a scenario asks, or a trace or profile as a scenario that is not written yet."""
    path = Path(source)
    if path.suffix == ".toml" or not path.exists():
        return Source(open_question(source, platform, folders, sets), "scenario")
    from whatif.engine.result import Question

    kind, document = _document(path, platform or DEFAULT_PLATFORM, folders, model)
    return Source(Question(document, None, parse_sets(sets), folders), kind, path)


def _document(path: Path, platform: str, folders: tuple[Path, ...], model: str | None) -> tuple[Kind, Document]:
    from whatif.export.trace_scenario import trace_scenario
    from whatif.importers.profiles import is_profile

    if not path.is_dir() and is_profile(path):
        return "profile", _profile_scenario(path, platform, folders)
    return "trace", trace_scenario(path, platform, model or "", folders)


def _profile_scenario(path: Path, platform: str, folders: tuple[Path, ...]) -> Document:
    from whatif.export.profile_scenario import scenario_toml
    from whatif.export.trace_scenario import free_name
    from whatif.importers.profiles import read_profile
    from whatif.schema.load import load_platform
    from whatif.schema.toml import parse_document, shown_path

    text = scenario_toml(read_profile(path), platform, path.name.split(".")[0], load_platform(platform, folders)[0])
    return parse_document(text, shown_path(free_name(path)), path.resolve().parent)
