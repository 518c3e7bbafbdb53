"""Every name of a quantity: parameters of the files and parameters of the model functions, with their units."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict

from pydantic import BaseModel

import whatif.models
from whatif.core.term import signature
from whatif.linpack import hpl_application as hpl
from whatif.schema import application, network, price
from whatif.schema import blas_kernels as kernels
from whatif.schema import platform_spec as platform
from whatif.schema.fields import quantity_field


def quantity_names() -> dict[str, list[str]]:
    """Names by unit, both sorted; `any` for parameters that take whatever they are given."""
    units: dict[str, set[str]] = defaultdict(set)
    for module in (platform, price, network, kernels, application, hpl):
        for part in vars(module).values():
            if isinstance(part, type) and issubclass(part, BaseModel):
                for name, info in part.model_fields.items():
                    field = quantity_field(info)
                    if field is not None and part is not platform.FitRecord:
                        units["any" if field.unit == "None" else field.unit].add(name)
    for found in pkgutil.iter_modules(whatif.models.__path__):
        for function in vars(importlib.import_module(f"whatif.models.{found.name}")).values():
            if hasattr(function, "citation"):
                for name, argument in signature(function).parameters.items():
                    units[str(argument.dimension or "any")].add(name)
    # Money is in no currency of its own where it feeds a model.
    units["any"] -= {name for unit, names in units.items() if unit.startswith("money") for name in names}
    return {unit: sorted(names) for unit, names in sorted(units.items())}


def quantity_table() -> str:
    """The rows of the README's table."""
    shown = {"1": "a count or fraction"}
    return "\n".join(f"| {shown.get(unit, unit)} | {', '.join(names)} |" for unit, names in quantity_names().items())


if __name__ == "__main__":
    print(quantity_table())
