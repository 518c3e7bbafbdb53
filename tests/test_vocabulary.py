"""Shared names: each set is defined once, and a new name needs no change elsewhere."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

from tests.paths import ROOT
from whatif.core.phases.message import _FUNCTIONS
from whatif.schema.application import HaloPhase, RegressionPhase, TracePhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.network import Distance, Network
from whatif.vocabulary import (
    CATEGORIES,
    DISTANCES,
    HALO_MODELS,
    MESSAGE_MODELS,
    PARAMETER_TABLES,
    PROTOCOLS,
    CollectiveModel,
)

NEW_CATEGORY = """
from typing import Literal
import whatif.vocabulary as vocabulary
vocabulary.Category = Literal[vocabulary.Category, "file_io"]
vocabulary.CATEGORIES = (*vocabulary.CATEGORIES, "file_io")

import whatif
from whatif.core.result import CATEGORY_TIMES

plain = whatif.load("jacobi2d")
before = whatif.run(plain)
document = plain.document
document.data["application"]["phases"]["checkpoint"] = dict(
    kind="regression", category="file_io", formula="y ~ 1", response_unit="s",
    terms={"Intercept": "1"}, coefficients={"Intercept": 2.0},
)
after = whatif.run(whatif.Scenario(document))
print(float(after["file_io_time"]), round(float(after["iteration_time"] - before["iteration_time"]), 9))
print("file_io_time" in CATEGORY_TIMES)
"""


def test_schema_has_the_names():
    network = tuple(name for name in Network.model_fields if name in DISTANCES)
    assert set(network) == set(DISTANCES)
    assert set(MESSAGE_MODELS) <= set(Distance.model_fields)
    assert set(HALO_MODELS) == set(get_args(HaloPhase.model_fields["model"].annotation))
    assert set(HALO_MODELS) - {"node_aware"} | {"pieces"} == set(get_args(TracePhase.model_fields["model"].annotation))
    assert set(get_args(CollectiveModel)) == set(get_args(CollectivePhase.model_fields["model"].annotation))
    assert set(CATEGORIES) == set(get_args(RegressionPhase.model_fields["category"].annotation))


def test_every_model_has_a_function_for_each_protocol():
    assert set(_FUNCTIONS) == {(model, protocol) for model in MESSAGE_MODELS for protocol in PROTOCOLS}
    assert set(PARAMETER_TABLES.values()) == set(MESSAGE_MODELS)


def test_a_new_category_needs_no_other_change():
    command = [sys.executable, "-c", NEW_CATEGORY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["2.0", "2.0", "True"], "")
