"""Measured values and their errors as they are written into a platform."""

import math

from tests.measured_at_hand import simulated
from whatif.files.measured_source import value_change
from whatif.measuring.whole_machine import MeasurementOptions, measure_machine
from whatif.units import BYTE_PER_SECOND


def test_the_error_of_one_repetition_is_not_known_and_not_zero():
    found = measure_machine(MeasurementOptions(seconds=0.1), simulated())
    one = value_change(found, "node.gpu.dram_bandwidth", BYTE_PER_SECOND, 2e12, math.nan, ("triad", 1, math.nan))
    assert "0 B/s" not in str(one.fits)
    several = value_change(found, "node.gpu.dram_bandwidth", BYTE_PER_SECOND, 2e12, 1e10, ("triad", 9, 0.01))
    assert "10 GB/s" in str(several.fits)
