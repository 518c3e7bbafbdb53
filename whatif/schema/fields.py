"""Types of the values in files: quantities with unit and domain, counts, fractions, choices.

A `QuantityField` defines how the text of a parameter becomes a float64, and which numbers are allowed. pydantic
validates files through it; sweeps and edits use the same object.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from whatif import units
from whatif.schema.distributions import Uncertain, is_distribution, parse_distribution, unknown_distribution
from whatif.schema.expressions import Expression, ExpressionError, parse_expression
from whatif.units import Dimension, UnitError, customary_unit, format_quantity, parse_quantity, parse_unit

LARGEST_INTEGER: Final = 2**53
KEY_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_]*$"
KEY_RULE: Final = "must start with a letter and hold only ASCII letters, digits and `_`"
Key = Annotated[str, Field(pattern=KEY_PATTERN)]
"""Name of a phase, a parameter, a dimension, ..: a part of a dotted path."""
_COUNT_OF: Final = re.compile(r"\s*[0-9.]+\s*[A-Za-z]+\s*")
"""Number with a word behind it, `8 nodes`."""
_SEVERAL: Final = re.compile(r"\.\.\s*[\dx+-]|,\s+\S")
"""Mark of a range or a list of values."""
_SHARE: Final = re.compile(rf"\s*({units.UNSIGNED})\s*%\s*")
"""Percentage without a sign: of a plain number it is the value, `10 %` is 0.1."""
_SUGGESTED: Final = re.compile(r"unknown unit `([^`]*)`(?:; did you mean (.*)\?)?$")
LINK_END_PATTERN: Final = r"^(cpu|gpu|switch)[0-9]+$"


def invalid(message: str, **place: str) -> PydanticCustomError:
    """Error for a validator to raise: at its value, at the `key` of its table, or at a `path` in the document."""
    return PydanticCustomError("invalid", "{message}", {"message": message, **place})


_EXAMPLES = {
    units.SECOND: "3.5 us",
    units.BYTE: "64 KiB",
    units.FLOP: "6 flop",
    units.BYTE_PER_SECOND: "12.5 GB/s",
    units.FLOP_PER_SECOND: "7.8 Tflop/s",
    units.PER_SECOND: "2.5 1/s",
    units.WATT: "300 W",
    units.CARBON_PER_JOULE: "380 gCO2e/kWh",
}


@dataclass(frozen=True, slots=True)
class Domain:
    """Allowed numbers of a parameter: an interval, optionally of whole numbers only."""

    minimum: float = 0.0
    maximum: float = math.inf
    above_minimum: bool = False
    whole: bool = False

    def accepts(self, value: Any) -> Any:
        """Whether a number (or, elementwise, an array) is in the domain; NaN and infinity never are."""
        inside = (value >= self.minimum) & (value <= self.maximum) & (abs(value) != math.inf)
        if self.above_minimum:
            inside = inside & (value > self.minimum)
        return inside & (value % 1 == 0) & (value <= LARGEST_INTEGER) if self.whole else inside

    def json_bounds(self) -> dict[str, float]:
        """Interval as keywords of JSON Schema."""
        low = {"exclusiveMinimum" if self.above_minimum else "minimum": self.minimum}
        return {key: bound for key, bound in {**low, "maximum": self.maximum}.items() if abs(bound) != math.inf}

    def describe(self, dimension: Dimension, refused: float = 0.0) -> str:
        """Description such as `a whole number of at least 1`, `between 0 and 1` or `greater than 0 and at most 1`; with
        the largest whole number if the refused value is above it."""
        if self.whole and self.maximum == math.inf and refused > LARGEST_INTEGER:
            return f"{self.describe(dimension)} and at most 2^53"
        low, high = (format_quantity(bound, dimension) for bound in (self.minimum, self.maximum))
        number = "a whole number " if self.whole else ""
        if self.minimum == -math.inf:
            return f"any {'whole ' * self.whole}number"
        if self.maximum != math.inf:
            exclusive = f"greater than {low} and at most {high}"
            return number + (exclusive if self.above_minimum else f"between {low} and {high}")
        if self.above_minimum:
            return f"{number}greater than {low}"
        return f"{number}of at least {low}" if self.whole else f"at least {low}"


def _several(text: str) -> str:
    """Error message for several values in the place of one; empty for other texts."""
    if not _SEVERAL.search(text):
        return ""
    return f"`{text[:60]}` is a {'range' if '..' in text else 'list'}: `S` (explorer) or `--sweep` sweeps it"


def _no_base(text: str) -> str:
    """Error message for a value relative to a missing one; empty for other texts."""
    from whatif.schema.relative import is_relative

    return f"`{text}` has no present value to change; state a value" if is_relative(text) else ""


@dataclass(frozen=True, slots=True)
class QuantityField:
    """Field of a numeric parameter: its dimension (None: any, as in `[parameters]`) and its domain."""

    dimension: Dimension | None
    domain: Domain = Domain()
    example: str = ""
    """Value in messages and schemas; empty for the usual one of the dimension."""

    @property
    def unit(self) -> str:
        """Dimension as text; `None` for any."""
        return str(self.dimension)

    def parse(self, raw: object) -> float | Expression | units.Quantity:
        """Value in base units of a TOML value or a text; raise ValueError that states what is allowed."""
        if isinstance(raw, str) and raw.lstrip().startswith("="):
            return self._expression(raw.strip())
        if isinstance(raw, str) and is_distribution(raw):
            return self._uncertain(raw)
        quantity = self._quantity(raw)
        if self.dimension is None:
            return quantity
        if not self.domain.accepts(quantity.value):
            raise ValueError(
                f"`{raw}` is not allowed; it must be {self.domain.describe(self.dimension, quantity.value)}"
            )
        return quantity.value

    def number(self, raw: object) -> float:
        """Number in base units for one value of a sweep; raise ValueError for an expression or a distribution."""
        value = self.parse(raw)
        if isinstance(value, Expression):
            raise ValueError(f"`{raw}`: a swept value must be a number, not an expression")
        number = value.value if isinstance(value, units.Quantity) else value
        if isinstance(number, Uncertain):
            raise ValueError(f"`{raw}`: a swept value must be a number, not a distribution")
        return number

    def _uncertain(self, text: str) -> Uncertain | units.Quantity:
        """Number with its distribution; raise ValueError unless the centre and the ends are in the domain."""
        distribution, centre = parse_distribution(text, self._quantity)
        value = round(centre.value) if self.domain.whole else centre.value
        wrong = [number for number in (value, *distribution.ends) if not self.domain.accepts(number)]
        if wrong and self.dimension is not None:
            allowed = self.domain.describe(self.dimension, wrong[0])
            raise ValueError(
                f"`{text}`: {format_quantity(wrong[0], self.dimension)} is not allowed; it must be {allowed}"
            )
        number = Uncertain(value, distribution)
        return units.Quantity(number, centre.dimension) if self.dimension is None else number

    def _expression(self, text: str) -> Expression:
        try:
            return parse_expression(text)
        except ExpressionError as error:
            raise ValueError(str(error)) from None

    def _quantity(self, raw: object) -> units.Quantity:
        if isinstance(raw, str):
            return self._convert(raw)
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise ValueError(f"`{raw}` is not a quantity; {self._wanted()}")
        if isinstance(raw, int) and abs(raw) > LARGEST_INTEGER:
            raise ValueError(f"`{raw}` is beyond 2^53, the largest whole number that is exact here")
        if not math.isfinite(raw):
            raise ValueError(f"`{raw}` is not a finite number")
        if raw != 0 and self.dimension not in (units.ONE, None):
            raise ValueError(f"`{raw}` has no unit; {self._wanted()}")
        return units.Quantity(float(raw), self.dimension or units.ONE)

    def _convert(self, text: str) -> units.Quantity:
        if not text.strip():
            raise ValueError(f"no value; {self._wanted()}")
        share = _SHARE.fullmatch(text) if self.dimension == units.ONE and not self.domain.whole else None
        if share is not None:
            return units.Quantity(float(share[1]) / 100, units.ONE)
        try:
            quantity = parse_quantity(text)
        except UnitError as error:
            raise ValueError(
                unknown_distribution(text)
                or _several(text)
                or _no_base(text)
                or self._no_count(text)
                or self._fitting(text, str(error))
            ) from None
        if self.dimension is None or quantity.dimension == self.dimension:
            return quantity
        if quantity == units.Quantity(0.0, units.ONE):
            return quantity
        # Papers print β in s/B as often as a bandwidth in B/s: both say the same without ambiguity.
        if self.dimension == units.BYTE_PER_SECOND == quantity.dimension**-1 and quantity.value:
            return units.Quantity(1.0 / quantity.value, self.dimension)
        if quantity.dimension == units.ONE:
            raise ValueError(f"`{text}` has no unit; {self._wanted()}")
        raise ValueError(f"`{text}` is in {customary_unit(0.0, quantity.dimension)[0]}; {self._wanted()}")

    def _fitting(self, text: str, message: str) -> str:
        """Message about an unknown unit, with what to write where no unit is suggested that the value can have."""
        found = _SUGGESTED.search(message)
        if found is None:
            return message
        suggested = found[2] or ""
        units_meant = filter(None, suggested.replace("`", "").split(" or "))
        # A suggestion in quotes is the whole unit, another one a word of it.
        texts = [f"1 {unit}" if "`" in suggested else text.replace(found[1], unit) for unit in units_meant]
        return message if any(map(self._allows, texts)) else f"{message[: found.end(1)]}`; {self._wanted()}"

    def _allows(self, text: str) -> bool:
        """Whether a text with another unit may be a value of this field."""
        try:
            return self._has_dimension(parse_quantity(text).dimension)
        except UnitError:
            return True

    def _has_dimension(self, dimension: Dimension) -> bool:
        return self.dimension in (None, dimension)

    def _no_count(self, text: str) -> str:
        """Error message for a word in place of a plain number, or behind a count; empty for other texts."""
        is_word = not any(map(str.isdigit, text)) or (self.domain.whole and _COUNT_OF.fullmatch(text))
        wrong = self.dimension == units.ONE and is_word
        return f"`{text[:60]}` is not a number; {self._wanted()}" if wrong else ""

    def _wanted(self) -> str:
        if self.dimension in (units.ONE, None):
            quantity = "" if self.dimension else f", or a quantity such as `{_EXAMPLES[units.BYTE_PER_SECOND]}`"
            return f"write a number such as {self._example}{quantity}"
        unit = customary_unit(0.0, self.dimension)[0]
        return f"write a quantity in {unit}, such as `{self.example or _EXAMPLES.get(self.dimension, f'3 {unit}')}`"

    @property
    def _example(self) -> float:
        """Plain number in the domain."""
        return 16 if self.domain.accepts(16) else 0.8

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, raw: object) -> float | Expression | units.Quantity:
        try:
            return self.parse(raw)
        except ValueError as error:
            raise invalid(str(error)) from None

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if self.dimension == units.ONE:
            number, shown = "integer" if self.domain.whole else "number", {"examples": [self._example, "= expression"]}
            return {**shown, "type": [number, "string"], "if": {"type": number}, "then": self.domain.json_bounds()}
        usual = "8 B" if self.dimension is None else _EXAMPLES.get(self.dimension, f"3 {self.dimension}")
        example = self.example or usual
        shown = {"examples": [example, "= expression"]}
        if self.dimension is None:
            return {**shown, "type": ["number", "string"]}
        # Editors show both values for a number without unit; the second one is not a number, so it allows none.
        only = {"enum": [0, f"a text with unit, such as `{example}`"]}
        return {**shown, "type": ["string", "number"], "if": {"type": "number"}, "then": only}


@dataclass(frozen=True, slots=True)
class MoneyField(QuantityField):
    """Field of money, or money per `denominator`, in the currency of its text."""

    example: str = "12 MUSD"
    denominator: Dimension = units.ONE

    @property
    def unit(self) -> str:
        """`money`, `money/s`, .., for any currency."""
        return "money" if self.denominator == units.ONE else f"money/{self.denominator}"

    def _quantity(self, raw: object) -> units.Quantity:
        # Not super(): `slots=True` creates a new class, which super() without arguments does not know.
        quantity = QuantityField._quantity(self, raw)
        problem = self.problem_of(quantity.dimension)
        if problem:
            raise ValueError(f"`{raw}` {problem}")
        if not self.domain.accepts(quantity.value):
            raise ValueError(f"`{raw}` is not allowed; it must be at least 0")
        return quantity

    def _has_dimension(self, dimension: Dimension) -> bool:
        return not self.problem_of(dimension)

    def _wanted(self) -> str:
        return f"write a price such as `{self.example}` (currencies: {', '.join(units.CURRENCIES)})"

    def problem_of(self, dimension: Dimension) -> str:
        """Error message for a dimension other than money per `denominator`; empty if it fits."""
        if dimension * self.denominator in units.MONEY.values():
            return ""
        found = "has no currency" if dimension == units.ONE else f"is in {dimension}"
        return f"{found}; {self._wanted()}"

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "examples": [self.example, "= expression"]}


POSITIVE: Final = Domain(above_minimum=True)

# Annotations for pydantic models. Expressions are resolved to floats before any formula uses them.
Value = float | Expression
Seconds = Annotated[Value, QuantityField(units.SECOND)]
Bytes = Annotated[Value, QuantityField(units.BYTE)]
PositiveBytes = Annotated[Value, QuantityField(units.BYTE, POSITIVE)]
Operations = Annotated[Value, QuantityField(units.FLOP)]
BytesPerSecond = Annotated[Value, QuantityField(units.BYTE_PER_SECOND, POSITIVE)]
BytesPerSecondOrZero = Annotated[Value, QuantityField(units.BYTE_PER_SECOND)]
OperationsPerSecond = Annotated[Value, QuantityField(units.FLOP_PER_SECOND, POSITIVE)]
PerSecond = Annotated[Value, QuantityField(units.PER_SECOND, POSITIVE)]
Count = Annotated[Value, QuantityField(units.ONE, Domain(minimum=1, whole=True))]
CountOrZero = Annotated[Value, QuantityField(units.ONE, Domain(whole=True))]
Number_ = Annotated[Value, QuantityField(units.ONE)]
AnyNumber = Annotated[Value, QuantityField(units.ONE, Domain(minimum=-math.inf))]
Fraction = Annotated[Value, QuantityField(units.ONE, Domain(maximum=1))]
PositiveFraction = Annotated[Value, QuantityField(units.ONE, Domain(maximum=1, above_minimum=True))]
Watts = Annotated[Value, QuantityField(units.WATT)]
CarbonPerJoule = Annotated[Value, QuantityField(units.CARBON_PER_JOULE)]
PositiveSeconds = Annotated[Value, QuantityField(units.SECOND, POSITIVE)]
Lifetime = Annotated[Value, QuantityField(units.SECOND, POSITIVE, "5 years")]
Money = Annotated[units.Quantity | Expression, MoneyField(None)]
MoneyPerSecond = Annotated[units.Quantity | Expression, MoneyField(None, Domain(), "2.5 USD/h", units.SECOND)]
MoneyPerJoule = Annotated[units.Quantity | Expression, MoneyField(None, Domain(), "0.15 EUR/kWh", units.JOULE)]
FactorFromOne = Annotated[Value, QuantityField(units.ONE, Domain(minimum=1))]
PositiveFactor = Annotated[Value, QuantityField(units.ONE, POSITIVE)]
Measured = Annotated[units.Quantity, QuantityField(None, Domain(minimum=-math.inf))]
AnyQuantity = Annotated[units.Quantity | Expression, QuantityField(None, Domain(minimum=-math.inf))]


def _known_unit(text: str) -> str:
    try:
        parse_unit(text)
    except UnitError as error:
        raise invalid(str(error)) from None
    return text


Unit = Annotated[str, AfterValidator(_known_unit)]


def quantity_field(info: FieldInfo | None) -> QuantityField | None:
    """`QuantityField` in the annotation of a pydantic field; None for a structural parameter."""
    if info is None:
        return None
    return next(_find(QuantityField, (info.annotation, *info.metadata)), None)


def _find(kind: type, items: tuple[Any, ...]) -> Iterator[Any]:
    """Objects of one class in the annotations of a type, at any depth."""
    for item in items:
        if isinstance(item, kind):
            yield item
        else:
            yield from _find(kind, (*get_args(item), *getattr(item, "__metadata__", ())))


def computed_default(text: str) -> Any:
    """Default of a field that an expression computes where the file states no value."""
    expression = parse_expression(text)
    return Field(default_factory=lambda: expression)


class StrictTable(BaseModel):
    """A table of a file: strict, frozen, without unknown keys; docstrings of fields become their help."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    meant: ClassVar[Mapping[str, str]] = {}
    """Advice for keys that the table lacks."""
