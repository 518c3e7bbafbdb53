"""Times under power limits, with the floor of the voltage fitted to the other GPUs (docs/validation.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_power_caps.py` writes the table of the page.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.models.power import capped_clock
from whatif.schema.gpu import GPU
from whatif.validation.tables import TABLES, rows_of

PAGE = ROOT / "docs" / "validation.md"
LIMITS = {"V100": 250, "A40": 300, "P100": 250, "Quadro RTX 6000": 260}
FLOORS = np.arange(0, 1.0001, 0.005)


@cache
def compared():
    """GPU, limit as a share of the highest one, and error, of the limited epochs."""
    columns = TABLES["power_caps"]().columns
    gpus, limits, errors = (columns[key].values for key in ("gpu", "limit", "error"))
    shares = limits / np.array([LIMITS[gpu] for gpu in gpus])
    limited = shares < 1
    return gpus[limited], shares[limited], errors[limited]


@cache
def epochs():
    """GPU, limit, highest limit, mean power without a limit and ratio of times, of the limited epochs."""
    rows = rows_of("power_caps.csv")
    full = {(row["gpu"], row["application"]): row for row in rows if float(row["power_limit_W"]) == LIMITS[row["gpu"]]}
    found = []
    for row in rows:
        first = full[row["gpu"], row["application"]]
        if row is not first:
            ratio = float(row["time_s"]) / float(first["time_s"])
            found.append((float(row["power_limit_W"]), LIMITS[row["gpu"]], float(first["average_power_W"]), ratio))
    return np.array([row["gpu"] for row in rows if row not in full.values()]), np.array(found).T


def errors_with(floor, mask):
    """Errors with any floor of the voltage."""
    limit, highest, mean, ratio = epochs()[1][:, mask]
    clock = capped_clock(limit, highest / 8, mean - highest / 8, np.float64(3), np.float64(floor))
    return 1 / clock / ratio - 1


def fitted_floor(mask):
    return min(FLOORS, key=lambda floor: float(np.abs(errors_with(floor, mask)).mean()))


def held_out(gpu):
    """Floor fitted to the other GPUs, and the errors on this one."""
    mask = epochs()[0] == gpu
    floor = fitted_floor(~mask)
    return floor, errors_with(floor, mask)


def row(gpu):
    gpus, shares, errors = compared()
    ours, low = gpus == gpu, (gpus == gpu) & (shares < 0.6)
    floor, without = held_out(gpu)
    cubic = errors_with(0, epochs()[0] == gpu)
    cells = [gpu, str(ours.sum()), *of_errors(errors[ours]), *of_errors(errors[low])[:2]]
    return f"| {' | '.join([*cells, f'{floor:.2f}', of_errors(without)[0], of_errors(cubic)[0]])} |\n"


def of_errors(errors):
    return f"{np.abs(errors).mean():.1%}", f"{errors.mean():+.1%}", f"{np.abs(errors).max():.0%}"


def table():
    head = "| GPU | epochs | mean error | bias | largest | below 60 %: mean error | bias "
    head += "| floor of the others | mean error | floor 0 |\n"
    return f"{head}|---|{'---:|' * 9}\n" + "".join(map(row, LIMITS))


def test_the_default_floor_is_that_of_all_four_gpus():
    assert GPU.model_fields["voltage_floor"].default == pytest.approx(fitted_floor(slice(None)), abs=1e-9)
    floors = {gpu: fitted_floor(epochs()[0] == gpu) for gpu in LIMITS}
    assert [floors[gpu] for gpu in ("V100", "Quadro RTX 6000", "A40")] == pytest.approx([0.855, 0.86, 0.965])


@pytest.mark.parametrize("gpu", LIMITS)
def test_errors_by_the_table_are_those_of_the_model(gpu):
    floor = GPU.model_fields["voltage_floor"].default
    gpus, _, errors = compared()
    np.testing.assert_allclose(errors[gpus == gpu], errors_with(floor, epochs()[0] == gpu), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("gpu", "share"), [("V100", 0.7), ("A40", 0.75), ("Quadro RTX 6000", 0.65)])
def test_a_floor_fitted_to_other_gpus_lowers_the_error(gpu, share):
    cubic = np.abs(errors_with(0, epochs()[0] == gpu)).mean()
    assert np.abs(held_out(gpu)[1]).mean() < share * cubic


def test_one_epoch_of_the_p100_is_below_the_floor():
    gpus, (limit, highest, mean, _) = epochs()
    room = (limit - highest / 8) / (mean - highest / 8)
    assert (room[gpus == "P100"] < GPU.model_fields["voltage_floor"].default ** 3).sum() == 1


def test_the_largest_errors_are_those_of_the_lowest_limits():
    gpus, shares, errors = compared()
    for gpu, watts, error in (("A40", 125, -0.46), ("Quadro RTX 6000", 100, -0.28), ("V100", 100, 0.13)):
        worst = np.flatnonzero(gpus == gpu)[np.abs(errors[gpus == gpu]).argmax()]
        assert round(float(shares[worst] * LIMITS[gpu])) == watts
        assert float(errors[worst]) == pytest.approx(error, abs=5e-3)


def test_epochs_down_to_60_percent_of_the_power_are_near_measured_ones():
    _, shares, errors = compared()
    high = shares >= 0.6
    assert np.abs(errors[high]).mean() < 0.025
    assert (np.abs(errors[high]) < 0.1).sum() == 91
    assert high.sum() == 94
    assert np.abs(errors[~high]).mean() < 0.115


def test_the_table_of_the_page_is_that_of_the_epochs():
    assert_shown(PAGE, "power caps", table())
