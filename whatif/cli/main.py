"""Entry point: verbs are imported when they run; an error is one message and a documented exit code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import click

from whatif import __version__
from whatif.cli.echo import echo
from whatif.cli.lazy_group import LazyGroup
from whatif.cli.process import PipeClosed, end_on_signals, open_streams, silence
from whatif.errors import (
    EXIT_DEFECT,
    EXIT_USAGE,
    NO_TRACE,
    NOT_TOML,
    NOT_UTF8,
    TOO_LARGE,
    InvalidFileError,
    WhatifError,
    did_you_mean,
)
from whatif.plugins import Verb, registered_verbs

_HELP: Final[dict[str, dict[str, str]]] = {
    "Predict": {
        "run": "Evaluate a scenario, or sweep its parameters.",
        "open": "Open the explorer on a scenario.",
        "serve": "Show the explorer in a browser.",
        "explain": "Show the equation, inputs, units and sources behind a result.",
        "show": "Show roofline, messages, placement, domains or timeline of a scenario.",
        "simulate": "Simulate a trace, or a scenario, message by message.",
        "report": "Write results and everything they rest on as one HTML page.",
    },
    "Decide": {
        "compare": "Rank platforms over several applications.",
        "budget": "Show what a budget of money or power buys.",
        "study": "Rank bids of a procurement study, a file, within its limits.",
        "seek": "Find the values that meet targets, break-even points, or Pareto fronts.",
        "sensitivity": "Rank parameters by elasticity, or list bottlenecks in order.",
        "scale": "Plan strong and weak scaling, isoefficiency, memory and node-hours.",
        "tune": "Search parameters of HPL, grid layouts, or plans of transformers.",
        "diff": "Attribute the difference between two scenarios to their changes.",
        "differences": "Show results and differing values of scenarios side by side.",
    },
    "Measure": {
        "measure": "Measure this machine and write it as a platform.",
        "import": "Read files of measurements and profiles of other programs.",
        "fit": "Fit a platform to measurements, or a model to your own runs.",
        "validate": "Compare predictions with measured runs, and the models with published results.",
        "calibrate": "Determine corrections of a scenario from measured runs.",
    },
    "Write and check files": {
        "new": "Write a new scenario, and a machine of parts.",
        "check": "Check scenario, platform and study files.",
        "list": "List platforms, scenarios, or the parameters of a scenario.",
        "resolve": "Print a scenario with its platform merged in.",
        "schema": "Print the JSON Schema of scenario, platform or study files.",
        "shell": "Print the completion script of a shell, or the man page.",
    },
}
"""Help of the verbs by section."""
_MODULES: Final = {"import": "import_files"}
"""`import` is a word of Python and cannot name a module."""
VERBS: Final[dict[str, Verb]] = {
    **{
        name: Verb(f"whatif.cli.{_MODULES.get(name, name)}", text, section)
        for section, verbs in _HELP.items()
        for name, text in verbs.items()
    },
    **registered_verbs(),
}

_PICTURES: Final = ("roofline", "messages", "placement", "domains", "timeline")
_HINTS: Final = {
    "help": "; see `whatif --help`, `whatif VERB --help`",
    "sweep": "; write `whatif run SCENARIO --sweep PATH=RANGE`",
    "plot": "; write `whatif run SCENARIO --plot`",
    **{name: f"; write `whatif show {name} SCENARIO`" for name in _PICTURES},
}
"""Advice for words that are no verbs."""
EPILOG: Final = (
    "SCENARIO is a path or the name of a shipped scenario, such as jacobi2d. Data goes to stdout, notes to stderr. "
    "Exit codes: 0 ok, 1 a defect, 2 wrong usage, 3 invalid file, 4 infeasible point, 5 results differ, or errors "
    "are too large, 130 interrupted (143 by SIGTERM, 129 by SIGHUP)."
)


class VerbGroup(LazyGroup):
    """Verbs, with a closed pipe kept from click, which would exit with 1 at it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise PipeClosed from None


@click.group(
    cls=VerbGroup,
    verbs=VERBS,
    title="Verbs",
    hints=_HINTS,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="whatif")
@click.pass_context
def program(context: click.Context) -> None:
    """What if the machine, or the application, were different? Starts the explorer without a verb."""
    if context.invoked_subcommand is None:
        # `invoke` takes the defaults of options without their callbacks.
        context.invoke(importlib.import_module("whatif.cli.open").command, overrides={})


def main() -> None:
    """Run the program; errors are shown without a traceback."""
    open_streams()
    end_on_signals()
    try:
        code = program.main(standalone_mode=False)
        sys.stdout.flush()
    except WhatifError as error:
        if os.environ.get("WHATIF_TRACEBACK"):
            echo(traceback.format_exc(), err=True)
        _fail(_other_reader(error) or str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        _fail(error.format_message(), error.exit_code)
    except click.ClickException as error:
        _fail(_of_click(_suggesting(error) if isinstance(error, click.NoSuchOption) else error), error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        cause = error.__cause__ or error
        _fail(str(cause) or "interrupted", getattr(cause, "exit_code", 130))
    except MemoryError:
        _fail("not enough memory; use fewer points", EXIT_USAGE)
    except (PipeClosed, BrokenPipeError):
        silence()
        sys.exit(0)
    except OSError as error:
        silence()
        what = "the output cannot be written" if error.filename is None else str(error.filename)
        _fail(f"{what}: {error.strerror or error}", EXIT_USAGE)
    except Exception as error:
        if os.environ.get("WHATIF_TRACEBACK"):
            raise
        from whatif.defects import defect_message

        _fail(defect_message(error), EXIT_DEFECT)
    sys.exit(code if isinstance(code, int) else 0)


def _suggesting(error: click.NoSuchOption) -> click.UsageError:
    """Error of an unknown option, with the ones that may be meant: those that begin like it, else similar ones."""
    parameters = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    known = [name for parameter in parameters for name in parameter.opts if name.startswith("-")]
    hint = did_you_mean(error.option_name, known)
    return click.UsageError(f"No such option `{error.option_name}`{hint}", error.ctx)


def _of_click(error: click.ClickException) -> str:
    """Message of an error of click, with the usage of the command."""
    text = error.format_message().rstrip(".")
    message = f"{text[:1].lower()}{text[1:]}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    usage = " ".join((context.command_path, *context.command.collect_usage_pieces(context)))
    return f"whatif: {message}\nusage: {usage}; see `{context.command_path} --help`"


def _other_reader(error: WhatifError) -> str:
    """Message for a file of another program where a scenario is expected; empty for any other error."""
    foreign = (NOT_TOML, NOT_UTF8, TOO_LARGE, NO_TRACE)
    if not isinstance(error, InvalidFileError) or not error.problems[0].message.startswith(foreign):
        return ""
    from whatif.api.file_kinds import import_verb, refusal
    from whatif.paths import is_file

    path = error.problems[0].file
    if path.endswith(".toml") or not is_file(Path(path)):
        return ""
    verb = import_verb(path)
    if verb:
        return f"{path}: of another program; `whatif import {verb} {path}` reads it"
    runs = f"{path}: a table, not a scenario; `whatif validate SCENARIO --runs {path}` compares measured runs"
    try:
        return refusal(path) or (runs if path.endswith(".csv") else "")
    except WhatifError as damaged:
        return str(damaged)


def _fail(message: str, code: int) -> None:
    echo(f"whatif: {message}" if "\n" not in message else message, err=True)
    sys.exit(code)
