"""Tables of a scenario: a platform, an application, named values and the axes to sweep."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, Union

from pydantic import Discriminator, Field, Tag, model_validator

from whatif.plugins import registered_applications, resolve
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.application import (
    Application,
    CellGrid,
    HaloPhase,
    Phase,
    StructuredGridPhase,
    TransferPhase,
)
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.correction_tables import CalibrationTable
from whatif.schema.fields import AnyQuantity, Key, StrictTable, invalid
from whatif.schema.gpu import GPU
from whatif.schema.kernel_phase import KernelPhase, MeasuredKernelPhase
from whatif.schema.platform_spec import CPU, FitRecord, PlatformSpec, Source
from whatif.units import UNITS

SweepValues = Annotated[str, Field(min_length=1)] | Annotated[list[str | int | float], Field(min_length=1)]
# Names of terms that every scenario has.
RESERVED = (
    "platform", "application", "parameters", "total", "iteration", "setup",
    "grid", "placement", "overlap", "host_link", "peer_link", "node", "calibration", "correction",
)  # fmt: skip


def _kind_of_application(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return "program" if kind is None else str(kind)


def _any_application() -> Any:
    """Union of `Application` and the applications of plug-ins, distinguished by `kind`."""
    known = {"program": Application, **{kind: resolve(item.schema) for kind, item in registered_applications().items()}}
    tagged = tuple(Annotated[schema, Tag(kind)] for kind, schema in known.items())
    return Annotated[Union[tagged], Discriminator(_kind_of_application)]  # noqa: UP007 - the members are computed


if TYPE_CHECKING:
    AnyApplication = Application
else:
    AnyApplication = _any_application()


class ScenarioSpec(StrictTable):
    """A complete scenario, with `extends` and the platform merged."""

    platform: PlatformSpec
    application: AnyApplication
    parameters: dict[Key, AnyQuantity] = {}
    """Named values and expressions, for use in other expressions."""
    sweep: dict[Key, Annotated[dict[str, SweepValues], Field(min_length=1)]] = {}
    """Axes by name: parameter path = values, such as `"1, 2, 4"` or `"1 GB/s .. 64 GB/s log 7"`; the parameters of one
    axis change together."""
    calibration: CalibrationTable | None = None
    accuracy: dict[Key, AccuracyCard] = {}
    """Accuracy over measured runs by category of phases, and of the `iteration`. A scenario that extends this one does
    not inherit it."""
    runs: str | None = None
    """Measured runs: name of a CSV file next to the scenario, with a row for each run. A scenario that extends this one
    does not inherit it."""
    sources: dict[str, Source] = {}
    """Source and grade of the values stated by this scenario, by path."""
    fits: dict[str, FitRecord] = {}
    """Uncertainty of fitted values stated by this scenario, by the path of their table."""

    @property
    def on_gpus(self) -> bool:
        """Whether kernels run on GPUs: as the application states, else if the nodes have any."""
        stated = self.application.runs_on
        return self.platform.node.gpu is not None if stated is None else stated == "gpu"

    @property
    def kernels_on_sockets(self) -> bool:
        """Whether the application has kernels, and these run on sockets."""
        kernels = (KernelPhase, MeasuredKernelPhase)
        return not self.on_gpus and any(isinstance(phase, kernels) for phase in self.application.phases.values())

    @property
    def kernel_device(self) -> GPU | CPU | None:
        """Device that kernels run on; None if the platform does not describe it."""
        return self.platform.node.gpu if self.on_gpus else self.platform.node.cpu

    @model_validator(mode="after")
    def _references(self) -> Self:
        _check_parameters(self.parameters)
        if self.runs is not None and (Path(self.runs).name != self.runs or self.runs in ("", ".", "..")):
            raise invalid("expected the name of a CSV file next to the scenario", path="runs")
        application = self.application
        for name, phase in application.phases.items():
            if name in RESERVED:
                raise invalid(f"`{name}` is reserved; give the phase another name", path=f"application.phases.{name}")
            if application.grid is None and _needs_grid(phase):
                raise invalid(f"this {phase.kind} phase needs `[application.grid]`", path=f"application.phases.{name}")
            if isinstance(phase, KernelPhase):
                _check_profiled(name, phase, application)
                _check_mix(name, phase)
            if isinstance(phase, HaloPhase) and (phase.inter_node_count is None) != (phase.total_count is None):
                raise invalid(
                    "state both `inter_node_count` and `total_count`, or neither", path=f"application.phases.{name}"
                )
            if isinstance(phase, CollectivePhase) and _forgets_size(phase):
                raise invalid("missing key", path=f"application.phases.{name}.message_size")
            if isinstance(phase, HaloPhase) and application.grid is not None:
                _check_bisection(name, phase, application.grid)
            if isinstance(phase, TransferPhase):
                _check_transfer(name, phase, application)
            if isinstance(phase, MeasuredKernelPhase):
                _check_measured(name, phase)
        if application.grid is not None and application.grid.decomposition == "given":
            _check_dimensions(application.grid)
        return self


def _check_parameters(names: Iterable[str]) -> None:
    for name in names:
        if name in UNITS:
            message = f"`{name}` is the name of a unit, so expressions would be ambiguous; use another name"
            raise invalid(message, path=f"parameters.{name}")


def _check_bisection(name: str, phase: HaloPhase, grid: CellGrid) -> None:
    if grid.decomposition != "bisection":
        return
    if grid.periodic or grid.mapping != "block":
        raise invalid(
            "a bisection requires `periodic = false` and block mapping", path="application.grid.decomposition"
        )
    if phase.neighbours != "all":
        raise invalid("a bisection requires `all`", path=f"application.phases.{name}.neighbours")


def _forgets_size(phase: CollectivePhase) -> bool:
    return phase.algorithm != "dissemination" and "message_size" not in phase.model_fields_set


def _needs_grid(phase: Phase) -> bool:
    if isinstance(phase, KernelPhase):
        return phase.metrics_per == "cell" or _grows(phase)
    return isinstance(phase, HaloPhase | StructuredGridPhase)


def _grows(phase: KernelPhase) -> bool:
    return phase.follows != "nothing" and phase.metrics_per in ("profile", "launch")


def _check_profiled(name: str, phase: KernelPhase, application: Application) -> None:
    if application.grid is not None and _grows(phase) and list(phase.profiled_cells) != list(application.grid.cells):
        wanted = ", ".join(application.grid.cells)
        message = f"`follows` requires the cells of the profiled run along {wanted}, in this order"
        raise invalid(message, path=f"application.phases.{name}.profiled_cells")


def _check_mix(name: str, phase: KernelPhase) -> None:
    shares = {"compute_fraction": phase.compute_fraction, "load_store_fraction": phase.load_store_fraction}
    stated = [key for key, value in shares.items() if value is not None]
    if len(stated) == 1:
        missing = next(key for key in shares if key not in stated)
        message = f"missing key, needed by `{stated[0]}`; without both, the mix of instructions does not count"
        raise invalid(message, path=f"application.phases.{name}.{missing}")


def _check_transfer(name: str, phase: TransferPhase, application: Application) -> None:
    path = f"application.phases.{name}"
    if (phase.transfer_size is None) == (phase.halo is None):
        raise invalid("a transfer requires either `transfer_size` or `halo`", path=path)
    if phase.halo is not None and not isinstance(application.phases.get(phase.halo), HaloPhase):
        raise invalid(f"no halo phase `{phase.halo}`", path=f"{path}.halo")


def _check_measured(name: str, phase: MeasuredKernelPhase) -> None:
    needed = phase.profiled_key
    if phase.bound != "nothing" and getattr(phase, needed) is None:
        raise invalid(f'missing key, needed by `bound = "{phase.bound}"`', path=f"application.phases.{name}.{needed}")


def _check_dimensions(grid: CellGrid) -> None:
    if list(grid.ranks) != list(grid.cells):
        wanted = ", ".join(grid.cells)
        message = f'`decomposition = "given"` requires ranks along {wanted}, in this order'
        raise invalid(message, path="application.grid.ranks")
