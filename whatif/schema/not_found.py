"""Names and files that are not of the kind asked for: what they are instead, and what may help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from whatif.errors import did_you_mean
from whatif.paths import exists, is_folder
from whatif.schema.shipped import PLURALS, SINGULARS, Kind, is_name, kind_of, names_in, shipped_folder, shipped_names
from whatif.schema.toml import read_document

_USES: Final[Mapping[str, str]] = {
    "scenario": "`whatif run {name}` evaluates it",
    "study": "`whatif study {name}` answers it",
    "platform": "`whatif run SCENARIO --platform {name}` uses it",
    "part": 'a platform names it in one of its tables, such as `cpu.extends = "epyc-9654"`',
}
_TABLES: Final = {"gpu": "platform.node.gpu", "cpu": "platform.node.cpu", "distance": "platform.network.inter_node"}
"""Table of a scenario for a shipped part, by the kind of the part."""
_MOST_NEAR: Final = 1000
"""Most files of a folder whose names are compared with one that does not exist."""
_HPL: Final = "; `whatif hpl HPL.dat --platform NAME` simulates the runs of an HPL.dat"


def other_kind(kind: Kind, asked: str, name: str) -> str:
    """Message about a file of a kind in the place of one of the asked kind."""
    return f"is a {kind}, not a {asked}: {_USES[kind].format(name=name)}"


def shipped_as_other(name: str, asked: str) -> str:
    """Message about a name that only shipped files of another kind have; empty for one that they have not."""
    stem = name.removesuffix(".toml")
    kind = next((kind for kind, folder in PLURALS.items() if kind != asked and stem in shipped_names(folder)), None)
    if kind is None:
        return ""
    data = read_document(shipped_folder(PLURALS[kind]) / f"{stem}.toml").data
    return _of_a_part(data, asked, stem) or other_kind(kind_of(data) or kind, asked, stem)


def _of_a_part(data: Mapping[str, Any], asked: str, name: str) -> str:
    """Message about a shipped part that an override can name; empty for other files."""
    table = _TABLES.get(data.get("part", ""))
    return f"is a part, not a {asked}: `--set {table}.extends={name}` uses it" if table else ""


def absent(path: Path, name: str, kind: str, folders: Sequence[Path], also: Sequence[str] = ()) -> str:
    """Reason why a path or name finds no file of a kind, or one of those accepted `also`, and what may help."""
    if name and exists(path):
        return "is a folder, not a file" if is_folder(path) else "is not an ordinary file"
    if other := shipped_as_other(name, SINGULARS[kind]):
        return other
    known = [item for accepted in (kind, *also) for item in names_in(folders, accepted)]
    near = [str(item) for item in islice(path.parent.glob("*.toml"), _MOST_NEAR)] if is_name(path.name) else []
    if hint := _HPL if kind == "scenarios" and name.casefold() == "hpl" else did_you_mean(name, [*near, *known]):
        return f"no such file or shipped name{hint}"
    if "/" in name:
        return "no such file"
    lists = " or ".join(f"`whatif list {accepted}`" for accepted in (kind, *also))
    return f"no such file or shipped name; {f'see {lists}' if also else 'known: ' + ', '.join(known)}"
