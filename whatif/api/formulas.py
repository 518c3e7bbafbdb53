"""Formulas of regressions, changed by one term at a time."""

from whatif.fitting.formula_edits import with_other_link, with_term, without_term

__all__ = ["with_other_link", "with_term", "without_term"]
