"""Tables of shipped platforms, parts and scenarios, and of the parameters of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from whatif.core.scenario import Scenario
from whatif.schema.load import load_platform, open_document, question_of
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import Document
from whatif.table import Table


def platform_table() -> Table:
    """Shipped platforms: name and description."""
    platforms = {name: load_platform(name)[0] for name in shipped_names("platforms")}
    rows = [(name, platform.description or platform.name) for name, platform in platforms.items()]
    return Table.of_rows({"platform": None, "description": None}, rows)


def part_table() -> Table:
    """Shipped parts of platforms: name, kind and description, by kind."""
    documents = {name: open_document(name, "parts") for name in shipped_names("parts")}
    rows = [
        (name, document.data["part"], part_description(document))
        for name, document in sorted(documents.items(), key=lambda item: (item[1].data["part"], item[0]))
    ]
    return Table.of_rows({"part": None, "kind": None, "description": None}, rows)


def part_description(document: Document, keys: Sequence[str] = ()) -> str:
    """Name of a part or its first comment, and some of its values as the file states them."""
    data = document.data
    values = (str(data[key]) for key in keys if key in data)
    return ", ".join([str(data.get("name") or _first_comment(document.text)), *values])


def _first_comment(text: str) -> str:
    return next((line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#")), "")


def scenario_table() -> Table:
    """Shipped scenarios: name and the question that they answer."""
    rows = [(name, question_of(open_document(name, "scenarios").text)) for name in shipped_names("scenarios")]
    return Table.of_rows({"scenario": None, "question": None}, rows)


def study_table() -> Table:
    """Shipped studies: name and the question that they answer."""
    rows = [(name, str(open_document(name, "studies").data["question"])) for name in shipped_names("studies")]
    return Table.of_rows({"study": None, "question": None}, rows)


def parameter_list(scenario: Scenario, below: str = "") -> Table:
    """Parameters of a scenario whose paths begin with some text: path, value, use, grade and source.

    The use is numeric, structural, or not used.
    """
    program = scenario.program
    rows = []
    for path, parameter in program.parameters.items():
        if not path.startswith(below):
            continue
        use = "structural" if parameter.structural else "numeric" if path in program.reached else "not used"
        rows.append((path, parameter.text(), use, parameter.grade, parameter.source))
    return Table.of_rows({"parameter": None, "value": None, "use": None, "grade": None, "source": None}, rows)


SHIPPED: Final[Mapping[str, Callable[[], Table]]] = {
    "platforms": platform_table,
    "parts": part_table,
    "scenarios": scenario_table,
    "studies": study_table,
}
"""Tables of shipped files."""
