"""Units against pint, exact values, and invalid quantities."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from whatif import units
from whatif.units import (
    BASES,
    BINARY_PREFIXES,
    CURRENCIES,
    DECIMAL_PREFIXES,
    SMALL_PREFIXES,
    SYMBOLS,
    UNITS,
    Dimension,
    Quantity,
    UnitError,
    exact_quantity,
    format_compared,
    format_quantity,
    parse_quantity,
    parse_unit,
)


@cache
def registry():
    # Imported by the one worker that needs it: it takes a quarter of a second.
    import pint

    pints = pint.UnitRegistry(non_int_type=float)
    pints.define("flop = [operation]")
    pints.define("op = flop")
    pints.define("cell = []")
    pints.define("message = []")
    pints.define("gCO2e = [carbon]")
    pints.define("tCO2e = 1e6 gCO2e")
    for currency in CURRENCIES:
        pints.define(f"{currency} = [money_{currency}]")
    return pints


# pint reads `B` as byte and `h` as Planck's constant unless the hour is defined.
SPELLED = {
    "h": "hour",
    "day": "day",
    "year": "year",
    "1": "dimensionless",
    "min": "minute",
    "Wh": "watt_hour",
    "B": "byte",
    "bit": "bit",
}
LONG_PREFIX = {"k": "kilo", "M": "mega", "G": "giga", "T": "tera", "P": "peta", "E": "exa"}
LONG_PREFIX |= {"m": "milli", "u": "micro", "µ": "micro", "μ": "micro", "n": "nano"}
LONG_PREFIX |= {"Ki": "kibi", "Mi": "mebi", "Gi": "gibi", "Ti": "tebi", "": ""}
LONG_UNIT = {"s": "second", "J": "joule", "W": "watt", "Hz": "hertz", "flop": "flop", "op": "op"}
LONG_UNIT |= {"days": "day", "years": "year"}
LONG_UNIT |= {name: name for name in ("cell", "message", "gCO2e", "tCO2e", *CURRENCIES)} | SPELLED
CASES = [(prefix, symbol) for symbol, (_, _, prefixes) in SYMBOLS.items() for prefix in prefixes]


def in_pint(dimension):
    pints = registry()
    unit = pints.dimensionless
    bases = (pints.second, pints.byte, pints.flop, pints.joule, *map(pints.parse_units, ("gCO2e", *CURRENCIES)))
    for base, power in zip(bases, dimension.powers, strict=False):
        unit = unit * base**power
    return unit


@pytest.mark.parametrize(("prefix", "symbol"), CASES)
def test_every_unit_agrees_with_pint(prefix, symbol):
    dimension, size = UNITS[prefix + symbol]
    if symbol == "Hz":
        # pint defines a hertz as one dimensionless cycle per second.
        expected = (1 * registry().Unit(f"{LONG_PREFIX[prefix]}hertz")).to("1/second").magnitude
    elif symbol == "1":
        expected = 1.0
    else:
        expected = registry().Quantity(1.0, LONG_PREFIX[prefix] + LONG_UNIT[symbol]).to(in_pint(dimension)).magnitude
    assert_allclose(size, expected, rtol=1e-15, atol=0)


def test_unit_table_has_exactly_all_allowed_prefixes():
    assert len(UNITS) == len(CASES)
    assert set(UNITS) == {prefix + symbol for prefix, symbol in CASES}
    assert set(SMALL_PREFIXES) <= set(SYMBOLS["s"][2])
    assert set(BINARY_PREFIXES) <= set(SYMBOLS["B"][2])
    assert set(DECIMAL_PREFIXES) <= set(SYMBOLS["flop"][2])
    assert not set(SMALL_PREFIXES) & set(SYMBOLS["B"][2]), "mB is no quantity of bytes"
    assert not {"k", "M", "G"} & set(SYMBOLS["s"][2]), "ks would be a surprise"


@pytest.mark.parametrize(
    ("text", "pint_text", "dimension"),
    [
        ("GB/s", "gigabyte/second", units.BYTE_PER_SECOND),
        ("Gbit/s", "gigabit/second", units.BYTE_PER_SECOND),
        ("ns/B", "nanosecond/byte", units.BYTE_PER_SECOND**-1),
        ("Tflop/s", "teraflop/second", units.FLOP_PER_SECOND),
        ("flop/B", "flop/byte", units.FLOP_PER_BYTE),
        ("1/s", "1/second", units.PER_SECOND),
        ("Gcell/s", "gigacell/second", units.PER_SECOND),
        ("kWh", "kilowatt_hour", units.JOULE),
        ("B^2/s", "byte**2/second", Dimension((-1, 2, 0, 0))),
        ("W*s", "watt*second", units.JOULE),
        ("MiB / ms", "mebibyte/millisecond", units.BYTE_PER_SECOND),
    ],
)
def test_compound_units_agree_with_pint(text, pint_text, dimension):
    assert parse_unit(text)[0] == dimension
    expected = (1.0 * registry().Unit(pint_text) if "1/" not in pint_text else 1.0 / registry().second).to(
        in_pint(dimension)
    )
    assert_allclose(parse_unit(text)[1], expected.magnitude, rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.24 us", 1.24e-6),
        ("0.155 ns", 0.155e-9),
        ("479 ns", 479e-9),
        ("1.24µs", 1.24e-6),
        ("1.24 μs", 1.24e-6),
        ("12.5 GB/s", 12.5e9),
        ("779.4108 GB/s", 779.4108e9),
        ("13083.7225 Gflop/s", 13083.7225e9),
        ("0.087 ns/B", 0.087e-9),
        ("64 KiB", 65536.0),
        ("25 Gbit/s", 3.125e9),
        ("1 Gbit", 1.25e8),
        (".5 ms", 0.5e-3),
        ("5. ms", 5e-3),
        ("1_000_000 B", 1e6),
        ("+3 s", 3.0),
        ("-3e-2 s", -0.03),
        ("1e3 us", 1e-3),
        ("1E+3us", 1e-3),
        ("0.1 h", 360.0),
        ("2 min", 120.0),
        ("3 kcell", 3000.0),
        ("16", 16.0),
        ("9007199254740992", 2.0**53),
    ],
)
def test_parsed_values_are_exact(text, value):
    assert parse_quantity(text).value == value


@given(st.decimals(-(10**6), 10**6, places=4), st.sampled_from(["s", "ms", "us", "ns", "kB", "GB", "Tflop", "EB"]))
def test_decimal_prefix_equals_exponent_in_the_text(number, unit):
    exponent = {"": 0, "m": -3, "u": -6, "n": -9, "k": 3, "G": 9, "T": 12, "E": 18}[unit.rstrip("flopBs")]
    assert parse_quantity(f"{number} {unit}").value == float(f"{number}e{exponent}")


MEASURES = [
    units.SECOND,
    units.BYTE,
    units.FLOP,
    units.BYTE_PER_SECOND,
    units.FLOP_PER_SECOND,
    units.PER_SECOND,
    units.FLOP_PER_BYTE,
    units.JOULE,
    units.WATT,
    units.ONE,
    units.BYTE_PER_SECOND**-1,
    Dimension((-1, 2, 0, 0)),
]


@given(
    st.floats(1e-15, 1e20) | st.integers(0, 2**45).map(float) | st.integers(1, 999).map(lambda i: i * 1024.0**3),
    st.sampled_from(MEASURES),
    st.integers(3, 17),
    st.booleans(),
)
def test_formatted_quantity_is_parsed_back(value, dimension, digits, negative):
    value = -value if negative else value
    read = parse_quantity(format_quantity(value, dimension, digits))
    assert read.dimension == dimension
    if value == 0:
        assert read.value == 0
    else:
        assert_allclose(read.value, value, rtol=0.5000001 * 10.0 ** (1 - digits) + 4e-16, atol=0)


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (1.25e10, units.BYTE_PER_SECOND, "12.5 GB/s"),
        (65536.0, units.BYTE, "64 KiB"),
        (16e9, units.BYTE, "16 GB"),
        (512e9, units.BYTE, "512 GB"),
        (16 * 2.0**30, units.BYTE, "16 GiB"),
        (1.24e-6, units.SECOND, "1.24 us"),
        (0.0, units.SECOND, "0 s"),
        (1536.0, units.ONE, "1536"),
        (1.281e-5, units.ONE, "1.281e-05"),
        (2e-12, units.SECOND, "0.002 ns"),
        (2e-16, units.SECOND, "2e-07 ns"),
        (3600.0, units.SECOND, "3600 s"),
        (23456789.0, units.SECOND, "23456789 s"),
        (5 * 31_557_600.0, units.SECOND, "5 year"),
        (2e6, Dimension((0, 2, 0, 0)), "2000000 B^2"),
        (2000.0, units.BYTE_PER_SECOND**-1, "2000 s/B"),
        (0.5, units.BYTE, "0.5 B"),
        (2.5e9, units.PER_SECOND, "2500000000 1/s"),
        (math.nan, units.SECOND, "nan"),
        (math.inf, units.SECOND, "inf"),
    ],
)
def test_format_of_quantities(value, dimension, text):
    assert format_quantity(value, dimension) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Gb", "did you mean Gbit or GB"),
        ("1 Gb/s", "did you mean Gbit or GB"),
        ("1 Mb", "did you mean Mbit or MB"),
        ("1 KB", "did you mean kB or KiB"),
        ("1 Gbps", "did you mean Gbit/s"),
        ("1 mB", "did you mean MB"),
        ("1 sec", "did you mean s"),
        ("1 bytes", "did you mean B"),
        ("1 TFLOPS", "did you mean Tflop/s"),
        ("1 Gflops", "did you mean Gflop/s"),
        ("1 ks", "unknown unit `ks`"),
        ("1 mflop", "did you mean"),
        ("1 KiS", "unknown unit `KiS`"),
        ("1 GB/", "missing unit"),
        ("1 /s", "did you mean `1/s`"),
        ("1 GB//s", "missing unit"),
        ("1 GB s", "unknown unit"),
        ("1 B^x", "unknown unit"),
        ("1 B^10", "unknown unit"),
        ("1 B**2", "missing unit"),
        ("1 parsec", "^unknown unit `parsec`"),
        ("1 GB/parsec", "^`GB/parsec`: unknown unit `parsec`"),
        ("8 micros", "did you mean us"),
        ("3 Hours", "did you mean h"),
        ("60 months", "did you mean days or years"),
        ("2 weeks", "did you mean days"),
        ("8 Bytes", "did you mean B"),
        ("400 Euro", "did you mean EUR"),
        ("4 Watts", "did you mean W"),
        ("5 y", "did you mean years"),
        ("5 Yr", "did you mean years"),
        ("200 gbps", "did you mean Gbit/s or GB/s"),
        ("25 GBs", "did you mean GB/s"),
        ("25 Gbytes/s", "did you mean `GB/s`"),
        ("95 kEuro", "did you mean `kEUR`"),
        ("60 KWatt", "did you mean `kW`"),
        ("GB/s", "is not a number with a unit"),
        ("", "is not a number with a unit"),
        ("   ", "is not a number with a unit"),
        ("nan", "is not a number with a unit"),
        ("inf", "is not a number with a unit"),
        ("-inf s", "is not a number with a unit"),
        ("nan s", "is not a number with a unit"),
        ("1e999 s", "too large"),
        ("1e308 EB", "too large"),
        ("1e-400 s", "`1e-400 s` is too small for a 64-bit float; write 0"),
        ("-0.001e-320 ns", "too small"),
        ("-1e999", "too large"),
        ("1 EB^9*EB^9*EB^9", "too large"),
        ("1 ns^9*ns^9*ns^9*ns^9*ns^9", "too small"),
        ("1__0 s", "unknown unit"),
        ("1_ s", "unknown unit"),
        ("_1 s", "is not a number with a unit"),
        ("1,5 s", "`1,5 s`: no comma in numbers: the decimal mark is a point"),
        ("1,000", "`1,000`: no comma in numbers: the decimal mark is a point, and thousands have no mark"),
        ("1 TF/s", "did you mean Tflop"),
        ("20 million USD", "did you mean MUSD"),
        ("5 k€", "did you mean kEUR"),
        ("1e s", "unknown unit"),
        ("0x10", "unknown unit"),
        ("٣ s", "is not a number with a unit"),
        ("1" + " " * 300 + "GB", "is not a number with a unit"),
        ("1" * 400, "is not a number with a unit"),
        ("1 \x00", "unknown unit"),
        ("--1 s", "is not a number with a unit"),
    ],
)
def test_invalid_quantity_raises_with_a_reason(text, message):
    with pytest.raises(UnitError, match="(?s)" + message.replace("/", "\\/")) as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 400


@given(st.text(max_size=30) | st.from_regex(r"[+-]?[0-9._e+-]{1,9} ?[A-Za-z0-9µ/*^ ]{0,12}", fullmatch=True))
def test_any_text_gives_a_quantity_or_a_unit_error(text):
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        reason = str(error)
    else:
        reason = "finite" if math.isfinite(quantity.value) else ""
    assert reason


@given(st.tuples(*[st.integers(-4, 4)] * len(BASES)), st.tuples(*[st.integers(-4, 4)] * len(BASES)), st.integers(-2, 2))
def test_dimensions_multiply_as_powers_add(one, other, power):
    a, b = Dimension(one), Dimension(other)
    assert (a * b) / b == a
    assert a**power == Dimension(tuple(item * power for item in one))
    assert (a / b) ** -1 == b / a


@given(st.tuples(*[st.integers(-9, 9)] * len(BASES)))
def test_name_of_a_dimension_is_a_valid_unit(powers):
    dimension = Dimension(powers)
    assume(any(powers))
    assert parse_unit(str(dimension)) == (dimension, 1.0)


def test_base_units_agree_with_pint():
    assert [parse_quantity(f"1 {base}") for base in BASES] == [
        Quantity(1.0, Dimension(tuple(int(i == j) for j in range(len(BASES))))) for i in range(len(BASES))
    ]


@pytest.mark.parametrize(
    ("text", "base"),
    [("0.15 EUR/kWh", 0.15 / 3.6e6), ("2.5 USD/h", 2.5 / 3600), ("380 gCO2e/kWh", 380 / 3.6e6), ("3 MWh", 1.08e10),
     ("12 MUSD", 1.2e7), ("40 tCO2e", 4e7), ("900 kJ", 9e5)],
)  # fmt: skip
def test_energy_money_and_carbon_have_customary_units(text, base):
    quantity = parse_quantity(text)
    assert_allclose(quantity.value, base, rtol=1e-15, atol=0)
    assert format_quantity(quantity.value, quantity.dimension) == text


def test_currencies_are_distinct_dimensions():
    assert parse_quantity("1 EUR").dimension != parse_quantity("1 USD").dimension


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("gb/s", "`GB/s` or `Gbit/s`"),
        ("GBit/s", "`Gbit/s`"),
        ("GB/S", "`GB/s`"),
        ("Tflop/S", "`Tflop/s`"),
        ("mw/S", "`MW/s` or `mW/s`"),
        ("usd/h", "`USD/h`"),
    ],
)
def test_unit_in_the_wrong_case_is_suggested_in_the_right_one(text, meant):
    with pytest.raises(UnitError) as caught:
        parse_unit(text)
    assert str(caught.value).endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("text", ["1.36 TB/s", "0.1 TB/s", "1.24 us", "64 KiB", "5", "12.345678901234567 GB/s"])
def test_an_exact_quantity_is_read_back_as_the_same_value_and_has_no_other_digits(text):
    quantity = parse_quantity(text)
    found = exact_quantity(quantity.value, quantity.dimension)
    assert parse_quantity(found) == quantity
    assert len(found) <= len(text)


@given(value=st.floats(allow_nan=False, allow_infinity=False, min_value=1e-30, max_value=1e30))
def test_every_exact_quantity_is_read_back_as_the_same_value(value):
    for dimension in (units.SECOND, units.BYTE_PER_SECOND, units.ONE, units.JOULE):
        assert parse_quantity(exact_quantity(value, dimension)).value == value


def test_compared_values_have_one_unit_and_the_digits_that_tell_them_apart():
    assert format_compared([206.2e9, 192 * 2**30], units.BYTE) == ["192.04 GiB", "192 GiB"]
    assert format_compared([1024.0, 1023.0], units.ONE) == ["1024", "1023"]
    assert format_compared([5e9, 5e9], units.BYTE) == ["5 GB", "5 GB"]
    assert format_compared([2.0, 0.1], units.SECOND) == ["2000 ms", "100 ms"]
