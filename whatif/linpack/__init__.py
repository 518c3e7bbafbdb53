"""High Performance Linpack: its phase, its simulation, and its files."""

from __future__ import annotations

from typing import Final

from whatif.plugins import ApplicationKind, Plugin, PluginPage, Verb

PLUGIN: Final = Plugin(
    applications={
        "hpl": ApplicationKind(
            "whatif.linpack.hpl_application:HPLApplication",
            "whatif.linpack.hpl_terms:wire_hpl",
            "whatif.linpack.predictions:sampling_remarks",
        )
    },
    verbs={
        "hpl": Verb("whatif.cli.hpl", "Predict every run of an HPL.dat.", "Predict"),
        "tune hpl": Verb("whatif.cli.tune_hpl", "N, NB, P x Q, broadcast, swap and depth of HPL."),
    },
    pages={"hpl": PluginPage("whatif.tui.pages.hpl:HPLPage", "ranks", "hpl")},
)
