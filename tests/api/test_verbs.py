"""The verbs of the command line and the functions of the library have the same names and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import pytest

import whatif
from whatif.cli.lazy_group import contexts_below
from whatif.cli.main import program

FRONT_ENDS = {"open", "serve", "shell"}
"""Verbs that start the explorer, and that of the shell."""
FUNCTIONS = {
    "list": ("list_",),
    "run": ("run", "sweep", "sweep_parts"),
    "schema": ("json_schema",),
    "seek": ("seek", "break_even", "pareto_front"),
    **{f"show_{name}": (name,) for name in ("domains", "messages", "placement", "roofline", "timeline")},
    "study": ("study", "new_study", "study_page"),
    "validate": ("validate", "comparisons"),
}
"""Functions of verbs whose path is not their name: `list` is a type of Python, `schema` and `show` say too little."""
PRESENTATION = {"file_format", "output", "plot", "relative"}
"""Options that choose how a result is shown, and where it is written."""
NO_VERBS = {"load", "resumable"}
"""Functions that prepare the arguments of others, or write their inputs as a scenario."""
_PLATFORM_FILE = {"extends", "points", "source"}
_MODEL_FILE = {"platform", "scenario", "source"}
WRITING = {
    "calibrate": {"log"},
    "fit_collectives": _PLATFORM_FILE,
    "fit_gpu": _PLATFORM_FILE,
    "fit_grid": _MODEL_FILE | {"case"},
    "fit_host": _PLATFORM_FILE,
    "fit_kernel": _PLATFORM_FILE,
    "fit_network": _PLATFORM_FILE,
    "fit_regression": _MODEL_FILE,
    "fit_transfer": _PLATFORM_FILE,
    "hpl": {"save"},
    "run": {"runs"},
    "seek": {"log"},
    "sensitivity": {"log"},
    "simulate": {"timeline"},
    "tune_grid": {"save"},
    "tune_hpl": {"write_input"},
}
"""Options of files that a verb writes besides its table: parameters of a method of the result, or of `resumable`."""
CALLBACKS = {"observer", "progress"}
"""Parameters that report the progress, which a verb shows on the terminal."""


def verbs() -> Iterator[tuple[str, click.Command]]:
    """Every verb with its path joined by `_`."""
    for context in contexts_below(click.Context(program)):
        if not isinstance(context.command, click.Group):
            yield context.command_path.strip().replace(" ", "_").replace("-", "_"), context.command


VERBS = {name: command for name, command in verbs() if name not in FRONT_ENDS}


def functions(verb: str) -> list[object]:
    """The library functions of a verb; none where one of them is missing."""
    names = FUNCTIONS.get(verb, (verb,))
    return [getattr(whatif, name) for name in names] if set(names) <= set(whatif.__all__) else []


def differences(verb: str) -> set[str]:
    """Parameters that only the verb or only its functions have, or `(missing)` for a verb without a function."""
    found = functions(verb)
    if not found:
        return {"(missing)"}
    # A hidden option only refuses a word that other verbs have.
    options = {parameter.name or "" for parameter in VERBS[verb].params if not getattr(parameter, "hidden", False)}
    parameters = {name for function in found for name in inspect.signature(function).parameters}  # type: ignore[arg-type]
    return (options - parameters - PRESENTATION - WRITING.get(verb, set())) | (parameters - options - CALLBACKS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_verb_and_function_have_the_same_parameters(verb):
    assert differences(verb) == set()


def test_every_function_belongs_to_a_verb():
    known = {name for verb in VERBS for name in FUNCTIONS.get(verb, (verb,))}
    public = {name for name in whatif.__all__ if name[0].islower()}
    assert public - known == NO_VERBS


@pytest.mark.parametrize("name", sorted(name for name in whatif.__all__ if name[0].islower()))
def test_functions_are_typed_and_documented(name):
    function = getattr(whatif, name)
    signature = inspect.signature(function)
    assert ">>> " in (function.__doc__ or "")
    assert inspect.Parameter.VAR_KEYWORD not in {parameter.kind for parameter in signature.parameters.values()}
    assert signature.return_annotation not in (inspect.Signature.empty, "Any")


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute `nope`"):
        _ = whatif.nope
