"""Scenarios and platforms: checking, listing and resolving them; comparisons of the models with measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, Share, load
from whatif.arguments import share_of
from whatif.core.inventory import SHIPPED, parameter_list
from whatif.core.scenario import Scenario, resolved
from whatif.errors import UsageError, did_you_mean, require_choice
from whatif.limits import LISTED
from whatif.plotting.presentable import PresentableTable
from whatif.schema.json_schema import file_schema
from whatif.schema.shipped import shipped_names
from whatif.studies.file_checks import FileChecks, check_files
from whatif.vocabulary import ERROR_ROWS, ErrorRows

if TYPE_CHECKING:
    from whatif.studies.calibration import Calibration
    from whatif.studies.model_errors import ModelErrors
    from whatif.validation.comparisons import Comparisons


_TOLERANCE: Final = "0.1 %"


def check(
    *files: AnyScenario,
    platform_dirs: Sequence[str | Path] = (),
    against: str | Path | None = None,
    tolerance: Share | None = None,
    update: bool = False,
) -> FileChecks:
    """Problems of scenario, platform and part files, given by path or name, and results that differ from stored ones.

    `against` is a JSON file of results; a result may differ by the share `tolerance` (default 0.1 %). `update` writes
    the present results into that file. The outcome is returned; its `raise_for_problems` raises `InvalidFileError`,
    `InfeasiblePointError` for a scenario that can never be run, and `MovedError`. Raise `UsageError` for options that
    do not fit together.

    >>> import whatif
    >>> [file.kind for file in whatif.check("jacobi2d", "summit").files]
    ['scenario', 'platform']
    """
    if tolerance is not None and (against is None or update):
        raise UsageError("--tolerance: no effect without --against, and with --update")
    stated = _TOLERANCE if tolerance is None else tolerance
    share = share_of("--tolerance", stated)
    folders = tuple(map(Path, platform_dirs))
    return check_files(files, folders, None if against is None else Path(against), share, update=update)


def list_(what: str, scenario: AnyScenario | None = None, *, platform: AnyPlatform | None = None) -> PresentableTable:
    """Table of the shipped `platforms`, `parts`, `scenarios` or `studies`, or of the `parameters` of a scenario.

    The scenario is `jacobi2d` by default; with a platform and no scenario, the parameters are those of the platform.
    Raise `UsageError` for anything else, and for a scenario or platform that is not used.

    >>> import whatif
    >>> "summit" in set(whatif.list_("platforms").to_pandas()["platform"])
    True
    """
    if what == "parameters":
        if isinstance(scenario, str) and scenario in shipped_names("platforms"):
            raise UsageError(f"`{scenario}` is a platform: its parameters are those of `--platform {scenario}`")
        loaded = load("jacobi2d" if scenario is None else scenario, platform=platform)
        below = "platform." if scenario is None and platform is not None else ""
        return PresentableTable(parameter_list(loaded, below))
    if what not in SHIPPED:
        raise UsageError(f"`{what}`: expected one of {', '.join(LISTED)}{did_you_mean(what, LISTED)}")
    if (unused := platform if scenario is None else scenario) is not None:
        raise UsageError(f"`{unused}`: no effect on the list of {what}; a scenario has `parameters`")
    return PresentableTable(SHIPPED[what]())


def names_of_shipped(kind: str) -> tuple[str, ...]:
    """Names of the shipped `platforms`, `scenarios` or `studies`, without reading their files."""
    return shipped_names(kind)


def resolve(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> Scenario:
    """Scenario as one document, with platform, parts, `extends` and overrides merged in.

    The parameters are those of `load`. Raise `InvalidFileError` and `UsageError`.

    >>> import whatif
    >>> "extends" in whatif.resolve("jacobi2d", platform="frontier").to_toml()
    False
    """
    return resolved(load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs))


def json_schema(kind: str) -> dict[str, Any]:
    """JSON Schema of `platform`, `scenario` or `study` files. Raise `UsageError` for another kind.

    >>> import whatif
    >>> "application" in whatif.json_schema("scenario")["properties"]
    True
    """
    if kind not in ("platform", "scenario", "study"):
        raise UsageError(f"`{kind}`: expected platform, scenario or study")
    return file_schema(kind)


def validate(
    scenario: AnyScenario,
    *,
    runs: str | Path | None = None,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    by: ErrorRows = "run",
    tolerance: Share | None = None,
) -> ModelErrors:
    """Errors of the predictions of measured runs: by run, or by result, with mean absolute error and bias.

    `runs` is a CSV file (default: that of the scenario) with columns of parameters (`platform`, `rank_count`), and of
    measured results and phases with units (`iteration_time [us]`, `pack + unpack [us]`). The other parameters are
    those of `load`; with `platform`, only the runs on it are used.

    Raise `InvalidFileError` for runs that do not fit the scenario, and `UsageError` without runs. `raise_if_beyond` of
    the result raises `ToleranceError` if the mean absolute error of a result is larger than the share `tolerance`.

    >>> import whatif
    >>> errors = whatif.validate("minimd", platform="lassen")
    >>> [item.run_count for item in errors.accuracy if item.result == "iteration_time"]
    [6]
    """
    from whatif.studies.model_errors import model_errors

    require_choice("by", by, ERROR_ROWS)
    limit = None if tolerance is None else share_of("--tolerance", tolerance)
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return replace(model_errors(opened, runs), by=by, tolerance=limit)


def calibrate(
    scenario: AnyScenario,
    *,
    runs: str | Path | None = None,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    corrections: Sequence[str] = (),
) -> Calibration:
    """Corrections that measured runs support, with 95 % intervals: chosen by their error at held-out runs.

    `corrections` names kinds to use whatever that error: `kernels`, `messages`, `sharing`, `congestion`, `overhead`.
    Corrections of the application apply on every platform, those of a platform only there. `to_toml` and `write` of the
    result give the scenario with a `[calibration]`. The other parameters are those of `validate`.

    Raise `InvalidFileError` for runs that do not fit the scenario, `UsageError` for unknown corrections, those that no
    measured value depends on, too few runs, and results that are not linear in the corrections.

    >>> import whatif
    >>> found = whatif.calibrate("minife")
    >>> 0.89 < found.values["calibration.application.kernel_factor"] < 0.93
    True
    """
    from whatif.studies.calibration import calibrate as calibrated

    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return calibrated(opened, runs, corrections)


def comparisons(*topics: str) -> Comparisons:
    """Comparisons of the models with published results and other simulators: a table for each topic, and mean errors.

    Topics are those of `VALIDATION_TOPICS` in `whatif.limits`, by default all but `LONG_TOPICS`, `hpl` and `top500`,
    which take minutes. A table is computed when it is first used. Raise `UsageError` for another topic.

    >>> import whatif
    >>> len(whatif.comparisons("counts").table()) > 0
    True
    """
    from whatif.validation.comparisons import Comparisons

    return Comparisons.of(topics)
