"""Generalised additive model as a second opinion on a regression: the shape of each variable's effect.

Source: Sasidharan 2021, sections 3 and 5.1.3, which takes it; Hastie et al., The Elements of Statistical Learning,
2009, section 9.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.fit_result import root_mean_square
from whatif.fitting.least_squares import RunsFit
from whatif.models.quantities import FloatArray

_BASIS: Final = 8
"""Splines of a variable, at most; fewer where it has fewer values."""
_PENALTIES: Final = np.logspace(-6, 2, 17)


@dataclass(frozen=True, eq=False)
class Additive:
    """A sum of smooth functions, one of each variable, fitted to the runs of a regression."""

    fit: FloatArray
    """Shape (runs,), in the unit of the response."""
    residual_standard_error: float
    """Residual standard error in the unit of what was fitted, the response or its logarithm."""
    freedom: float
    """Effective parameters."""

    def difference(self, fit: RunsFit) -> float:
        """Root mean square of the difference between the two models over the runs, in the unit of the response."""
        other = fit.predict(fit.columns).fit
        return root_mean_square(self.fit - other)


def additive(fit: RunsFit) -> Additive:
    """Penalised cubic splines of the variables of a regression, without interactions.

    One penalty for all, of 17 that are tried, with the least generalised cross-validation error
    `n RSS / (n - freedom)²`. Raise `UsageError` if no variable has four values, and for too few runs.
    """
    from statsmodels.gam.api import BSplines, GLMGam
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    used = [fit.columns[name] for name in fit.formula.variables]
    smooth = [values for values in used if len(np.unique(values)) > 3]
    if not smooth:
        raise UsageError("an additive model needs a variable with at least four different values")
    scaled = np.stack([(values - values.min()) / np.ptp(values) for values in smooth], axis=1)
    # Two runs more than parameters are left for the scatter, as far as a cubic spline allows.
    most = max(4, min(_BASIS, len(scaled) - 2))
    counts = [min(most, len(np.unique(column))) for column in scaled.T]
    splines = BSplines(scaled, df=counts, degree=[3] * len(counts))
    # Two or three values make no curve: such a variable is used as it is.
    needed = sum(counts) - len(counts) + 1 + len(used) - len(smooth)
    if len(scaled) <= needed:
        raise UsageError(f"an additive model of these variables needs more than {needed} runs: there are {len(scaled)}")
    straight = [np.ones(len(scaled)), *(values / np.abs(values).max() for values in used if len(np.unique(values)) < 4)]
    try:
        tried: list[Any] = [
            GLMGam(fit.response, exog=np.stack(straight, axis=1), smoother=splines, alpha=[penalty] * len(counts)).fit()
            for penalty in _PENALTIES
        ]
    except PerfectSeparationError:
        raise UsageError("the runs lie on a curve exactly: an additive model adds nothing") from None
    best = min(tried, key=_error)
    fitted = np.asarray(best.fittedvalues)
    return Additive(
        np.exp(fitted) if fit.formula.link == "log" else fitted, float(np.sqrt(best.scale)), float(best.edf.sum())
    )


def _error(result: Any) -> float:
    """The generalised cross-validation error of a fit."""
    residuals = np.asarray(result.resid_response)
    return float(len(residuals) * (residuals @ residuals) / (len(residuals) - result.edf.sum()) ** 2)
