"""Scenarios as one document: platform, parts, `extends` and overrides merged in."""

from __future__ import annotations

from pathlib import Path

from whatif.core.platform import built_document
from whatif.core.scenario import Scenario
from whatif.schema.parameters import fits_of_parts, sources_of


def resolved(scenario: Scenario) -> Scenario:
    """Scenario that gives the same results and extends no other file."""
    program = scenario.program
    document = dict(program.loaded.layers.merged)
    # Each file states the sources of its values; the merged document must state those of the remaining values.
    document["platform"] = {key: value for key, value in document["platform"].items() if key != "sources"}
    document["sources"] = sources_of(program.parameters.values())
    if fits := document.get("fits", {}) | fits_of_parts(program.loaded.layers):
        document["fits"] = fits
    return Scenario(built_document(document, Path(scenario.document.name).stem))
