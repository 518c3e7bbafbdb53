"""GPU profiles: readers, characterisation, and projection to other machines (AHEAD)."""

from __future__ import annotations

from typing import Final

from whatif.plugins import Plugin, Verb

PLUGIN: Final = Plugin(
    verbs={
        "project": Verb("whatif.cli.project", "Project the copies of a GPU profile to another machine."),
        "import profile": Verb("whatif.cli.import_profile", "GPU profiles: nvprof, Nsight Systems, rocprof, Kineto."),
    },
)
