"""Every parameter of every scenario at 0 and at extremes: numbers, or a reason, alike in all outputs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))
NUMBERS = (0.0, 1e-300, 1e-30, 1.0, 1e30, 1e300, 2.0**53)


def extremes(parameter):
    domain = parameter.field.domain
    numbers = dict.fromkeys((*NUMBERS, domain.minimum, domain.maximum))
    return np.array([number for number in numbers if np.isfinite(number) and domain.accepts(number)])


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_result_is_infinite_or_missing_without_a_reason(name):
    scenario = whatif.load(name)
    numeric = [p for p in scenario.program.parameters.values() if p.field is not None]
    used = [parameter for parameter in numeric if parameter.path in scenario.program.reached]
    assert len(used) > 20
    for parameter in used:
        found = whatif.sweep(scenario, {parameter.path: extremes(parameter)})
        results = {**found.columns, **found.terms}
        for column, array in results.items():
            numbers = np.broadcast_to(array, found.grid.shape)
            assert not np.isinf(numbers).any(), (parameter.path, column)
            assert not (np.isnan(numbers) & (found.reason == "")).any(), (parameter.path, column)


OVERFLOWS = ("platform.network.topology.bandwidth=1e-300 B/s", "total_time is beyond the largest number")
NOT_FINITE = ("application.phases.pack.compute_fraction=0", "the time of `pack` is not finite because of")


@pytest.mark.parametrize(("override", "reason"), [OVERFLOWS, NOT_FINITE])
def test_an_infeasible_point_is_the_same_in_table_json_and_library(override, reason, whatif_main):
    path, _, value = override.partition("=")
    result = whatif.run("jacobi2d", overrides={path: value})
    assert all(np.isnan(array).all() for array in (*result.columns.values(), *result.terms.values()))
    (found,) = result.reason.ravel().tolist() or [""]
    assert found.startswith(reason)

    code, out, err = whatif_main("run", "jacobi2d", "--point", "--set", override)
    assert (code, err.splitlines()[-1]) == (4, f"whatif: infeasible: {found}")
    assert set("".join(line.split(None, 1)[1] for line in out.splitlines())) == {"-"}

    code, out, err = whatif_main("run", "jacobi2d", "--point", "--set", override, "--format", "json")
    row = json.loads(out)["rows"][0]
    assert (code, row["infeasible"], row["total_time"], set(row["terms"].values())) == (4, found, None, {None})
