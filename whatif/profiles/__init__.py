"""GPU profiles: readers, characterisation, and projection to other machines (AHEAD)."""

from __future__ import annotations

from typing import Final

from whatif.plugins import FileKind, PhaseFile, Plugin, Verb

PLUGIN: Final = Plugin(
    files={
        "profile": FileKind(
            "whatif.profiles.formats:is_profile",
            "whatif.profiles.formats:read_profile",
            "whatif.profiles.scenario_text:profile_scenario",
        )
    },
    phases={
        "profile": PhaseFile(
            "whatif.profiles.formats:is_profile", "whatif.profiles.scenario_text:profile_phases", "profile of GPU work"
        )
    },
    verbs={
        "project": Verb("whatif.cli.project", "Project the copies of a GPU profile to another machine.", "Predict"),
        "import profile": Verb("whatif.cli.import_profile", "GPU profiles: nvprof, Nsight Systems, rocprof, Kineto."),
    },
)
