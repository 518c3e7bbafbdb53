"""Edits written back: the file says what the session says, and every byte that holds no edited value stays."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tomli
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import whatif.files.scenario_edits
from tests.scenarios_at_hand import FEW
from whatif.cli.main import program
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep import parse_option
from whatif.errors import InvalidFileError, UsageError
from whatif.files.scenario_edits import (
    ChangedOnDiskError,
    command_line,
    difference,
    save,
    save_as,
    toml_patch,
)
from whatif.files.scenario_template import template
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.schema.expressions import Expression
from whatif.schema.load import load_platform
from whatif.schema.rewriting import rewritten
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import parse_document, read_document
from whatif.studies.measured_runs import measured_runs
from whatif.units import ONE

SCENARIOS = FEW
PLATFORMS = shipped_names("platforms")
GPUS = "platform.node.gpu_count"
MEMORY = "platform.node.gpu.dram_bandwidth"
RANKS = "application.rank_count"
MODEL = "application.phases.halo.model"
SMALL = """\
# What if?
#   (a small scenario)

platform = "summit"  # two rails

[application]
name = 'Test'           # in other quotes
rank_count = 16
iteration_count=10

# The grid is square.
[application.grid]   # weak
scaling = "weak"
cells = { x = 1000,  y = 1_000 }    # of a rank

[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "faces"

# Measured by hand.
[application.phases.pause]
kind = "overhead"
overhead_time = "3 us"      # was 4 us
# overhead_time = "2 us"
"""


def small(*changes):
    """The small scenario with other lines."""
    text = SMALL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def after(text, sets, platform=None):
    return rewritten(parse_document(text, "s.toml"), sets, platform)


def values(parameters):
    """What every parameter says, as plain values."""
    text = {
        path: parameter.value.text if isinstance(parameter.value, Expression) else parameter.value
        for path, parameter in parameters.items()
    }
    return {path: (value, str(parameters[path].dimension)) for path, value in text.items()}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def asking(path, sets, platform=None, folders=()):
    scenario = Scenario.open(path, overrides=sets, platform=platform, folders=folders)
    return scenario.document, scenario


# --- What is written, line by line -----------------------------------------------------------------------------------

# What is typed, and what becomes of one place of the file.
NAME, SIZES = "name = 'Test'           #", "application.phases.halo.message_sizes"
PAUSE, PLATFORM = "application.phases.pause.overhead_time", 'platform = "summit"  # two rails\n\n'
TABLE = '[platform]\nextends = "summit"  # two rails\n'
CHANGES = [
    ({RANKS: "96"}, "rank_count = 16\n", "rank_count = 96\n"),
    ({"application.iteration_count": " 20 "}, "iteration_count=10\n", "iteration_count=20\n"),
    ({"application.name": "A [new] name"}, NAME, 'name = "A [new] name"           #'),
    ({"application.name": "42"}, NAME, 'name = "42"           #'),
    ({"application.grid.cells.y": "= 2 * 500"}, "y = 1_000 }", 'y = "= 2 * 500" }'),
    ({"application.grid.cells.x": "4 kcell"}, "x = 1000,", 'x = "4 kcell",'),
    ({"application.grid.cells.x": "1e3"}, "x = 1000,", "x = 1e3,"),
    ({MODEL: "max_rate"}, 'model = "postal"', 'model = "max_rate"'),
    ({PAUSE: "5 us"}, '"3 us"      #', '"5 us"      #'),
    ({PAUSE: "0"}, '"3 us"      #', '"0"      #'),
    ({"application.grid.periodic": "true"}, "# of a rank\n", "# of a rank\nperiodic = true\n"),
    (
        {"application.memory_size": "1 GB", "application.ranks_per_gpu": "2"},
        "iteration_count=10\n", 'iteration_count=10\nmemory_size = "1 GB"\nranks_per_gpu = 2\n',
    ),
    (
        {f"{SIZES}.x": "8 B", f"{SIZES}.y": "= 2 * 8 B"},
        '"faces"\n\n', f'"faces"\n\n[{SIZES}]\nx = "8 B"\ny = "= 2 * 8 B"\n\n',
    ),
    ({GPUS: "8"}, PLATFORM, f"{TABLE}\n[platform.node]\ngpu_count = 8\n\n"),
    (
        {"platform.node_count": "10", "parameters.depth": "3"},
        PLATFORM, f"{TABLE}node_count = 10\n\n[parameters]\ndepth = 3\n\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("sets", "old", "new"), CHANGES)
def test_only_the_edited_value_changes(sets, old, new, newline):
    written = after(SMALL.replace("\n", newline), sets)
    assert written == small((old, new)).replace("\n", newline)


def test_a_platform_is_replaced_by_name():
    assert after(SMALL, {}, "lassen") == small(('"summit"  #', '"lassen"  #'))
    expected = small(
        ('platform = "summit"  #', '[platform]\nextends = "lassen"  #'), ("rails\n", "rails\nnode_count = 9\n")
    )
    assert after(SMALL, {"platform.node_count": "9"}, "lassen") == expected
    assert after(expected, {}, "bridges") == expected.replace("lassen", "bridges")


def test_keys_behind_the_platform_stay_on_their_level():
    """They would belong to a `[platform]` in their place; the name becomes a dotted key instead."""
    text = '# Q?\n"platform"  = "lassen" # one\n# more\nextends = "minife"\n\n[application.grid]\nscaling = "strong"\n'
    added = text.replace('"platform"  =', "platform.extends  =")
    added = added.replace('"minife"\n', '"minife"\nplatform.node_count = 8\nplatform.node.gpu_count = 8\n')
    assert after(text, {"platform.node_count": "8", GPUS: "8"}) == added
    assert tomli.loads(added)["platform"] == {"extends": "lassen", "node_count": 8, "node": {"gpu_count": 8}}


def test_a_platform_right_below_another_key_becomes_a_table_of_its_own():
    text = 'extends = "minife"\nplatform = "lassen"\n'
    assert after(text, {GPUS: "8"}) == (
        'extends = "minife"\n\n[platform]\nextends = "lassen"\n\n[platform.node]\ngpu_count = 8\n'
    )


def test_changes_go_into_the_file_that_extends():
    sweep = f'[sweep.gpus]\n"{GPUS}" = "1, 2"'
    text = f'extends = "minife"\n\n[application.phases.halo]\nmodel = "max_rate"\n\n{sweep}'
    sets = {GPUS: "8", RANKS: "64", "application.phases.dot.launch_count": "3", MODEL: "postal"}
    assert after(text, sets, "summit") == (
        'extends = "minife"\n\n[platform]\nextends = "summit"\n\n[platform.node]\ngpu_count = 8\n\n'
        "[application]\nrank_count = 64\n\n"
        f'[application.phases.halo]\nmodel = "postal"\n\n[application.phases.dot]\nlaunch_count = 3\n\n{sweep}'
    )


def test_a_new_table_comes_after_its_siblings():
    phase = "application.phases.more"
    added = f'\n[{phase}]\nkind = "overhead"\noverhead_time = "1 us"\n'
    assert after(SMALL, {f"{phase}.kind": "overhead", f"{phase}.overhead_time": "1 us"}) == SMALL + added


def test_a_line_of_blanks_separates_tables_as_well():
    text = small(("rails\n\n", "rails\n \t\n"))
    expected = text.replace("[application]\n", "[parameters]\nn = 1\n\n[application]\n")
    assert after(text, {"parameters.n": "1"}) == expected


def test_a_missing_line_end_is_added_before_new_lines():
    text = 'extends = "minife"\n[application.phases.halo]\nmodel = "max_rate"'
    assert after(text, {"application.phases.halo.halo_width": "2"}) == f"{text}\nhalo_width = 2\n"
    assert after(text, {"application.phases.dot.launch_count": "2"}) == (
        f"{text}\n\n[application.phases.dot]\nlaunch_count = 2\n"
    )


def test_comments_stay_with_the_table_below_them():
    sets = {"application.phases.halo.halo_width": "2", "application.grid.order": "fortran"}
    expected = small(("# of a rank\n", '# of a rank\norder = "fortran"\n'), ('"faces"\n', '"faces"\nhalo_width = 2\n'))
    assert after(SMALL, sets) == expected
    rule = "# of a rank\n\n# --- phases ---\n\n"
    text = small(("# of a rank\n\n", rule))
    assert rule.replace("\n", '\norder = "fortran"\n', 1) in after(text, sets)
    text = small(("\n\n# The grid", "\n# The grid"), ('"faces"\n\n', '"faces"\n'))
    written = after(text, {**sets, "application.ranks_per_gpu": "2"})
    assert "iteration_count=10\nranks_per_gpu = 2\n# The grid is square.\n[application.grid]   # weak\n" in written
    assert 'neighbours = "faces"\nhalo_width = 2\n# Measured by hand.\n[application.phases.pause]\n' in written


def test_leading_comments_stay_at_the_beginning_of_a_file():
    """A comment on the first line is about the file, also where a header follows at once."""
    text = f"# What if?\n{SMALL[SMALL.index('[application]') :]}"
    added = '# What if?\n\n[platform]\nextends = "summit"\n\n[parameters]\ndepth = 3\n\n[application]\n'
    assert after(text, {"parameters.depth": "3"}, "summit") == text.replace("# What if?\n[application]\n", added)


def test_inline_and_dotted_tables_are_filled_as_they_are():
    text = small(("cells = { x = 1000,  y = 1_000 }", "cells = {x = 1000}"))
    assert "cells = {x = 1000, y = 5}    # of a rank" in after(text, {"application.grid.cells.y": "5"})
    text = small(("cells = { x = 1000,  y = 1_000 }", "cells.x = 1000 # a\n  cells.y = 5"))
    assert "  cells.y = 5    # of a rank\n  cells.z = 6\n" in after(text, {"application.grid.cells.z": "6"})
    assert "cells.x = 7 # a\n  cells.y = 5    # of" in after(text, {"application.grid.cells.x": "7"})
    text = small(('"summit"', '{ extends = "summit", node.gpu_count = 4 }'))
    expected = '{ extends = "summit", node.gpu_count = 4, node.socket_count = 1 }  # two rails\n'
    assert expected in after(text, {"platform.node.socket_count": "1"})
    text = small(('platform = "summit"', 'platform = { extends = "summit" }'))
    expected = 'platform = { extends = "summit", node_count = 9, node = { gpu_count = 8 } }  # two rails\n'
    assert expected in after(text, {"platform.node_count": "9", GPUS: "8"})


def test_tables_out_of_order_are_filled_where_they_are():
    start, end, halo = (SMALL.index(words) for words in ("[application]", "# Measured", "[application.phases.halo]"))
    text = f"{SMALL[:start]}{SMALL[halo:end]}[sources]\n\n{SMALL[start:halo]}{SMALL[end:]}"
    written = after(text, {RANKS: "32", "application.phases.halo.halo_width": "2", MODEL: "max_rate"})
    expected = text.replace("rank_count = 16", "rank_count = 32").replace('"postal"', '"max_rate"')
    assert written == expected.replace('"faces"\n', '"faces"\nhalo_width = 2\n')


def test_long_texts_that_look_like_something_else_are_left_alone():
    name = 'name = """\n[application.grid]\n# no comment\n  x = 1\n# end"""\n'
    last = "iteration_count=10\n"
    text = small((f"{NAME} in other quotes\n", ""), (last, f"{last}{name}"))
    assert after(text, {"application.ranks_per_gpu": "2"}) == text.replace(name, f"{name}ranks_per_gpu = 2\n")
    assert after(text, {"application.name": "short"}) == text.replace(name, 'name = "short"\n')


def test_a_key_in_escapes_is_left_to_an_editor():
    text = small(('platform = "summit"', '"\\u0070latform" = "summit"'))
    assert after(text, {}, "lassen") == text.replace("summit", "lassen")
    with pytest.raises(UsageError, match=r"s\.toml: written in a way that only an editor can change"):
        after(text, {GPUS: "8"})


def test_values_that_the_scenario_cannot_have_are_refused():
    with pytest.raises(InvalidFileError, match="must be a whole number of at least 1"):
        after(SMALL, {RANKS: "0.5"})
    with pytest.raises(InvalidFileError, match="did you mean `rank_count`"):
        after(SMALL, {"application.rank_cuont": "3"})


# --- Properties ------------------------------------------------------------------------------------------------------

QUESTIONS = {name: Scenario.open(name) for name in SCENARIOS}
PROPERTY = settings(max_examples=10)


@st.composite
def typed(draw, parameter):
    """A text that a numeric parameter accepts."""
    domain = parameter.field.domain
    most = min(domain.maximum, 1000.0)
    least = max(domain.minimum, 0.0)
    if domain.whole:
        number = str(draw(st.integers(int(least), int(most))))
    else:
        number = repr(draw(st.floats(least, most, exclude_min=domain.above_minimum)))
    # `1.01/s` would be another number.
    space = draw(st.sampled_from([" ", "  ", *([] if str(parameter.dimension).startswith("1") else [""])]))
    return number if parameter.dimension == ONE else f"{number}{space}{parameter.dimension}"


@st.composite
def edited(draw):
    """A shipped scenario with some of its numbers changed."""
    name = draw(st.sampled_from(SCENARIOS))
    parameters = QUESTIONS[name].program.parameters
    numeric = sorted(path for path, parameter in parameters.items() if not parameter.structural)
    paths = draw(st.lists(st.sampled_from(numeric), min_size=1, max_size=8, unique=True))
    return name, {path: draw(typed(parameters[path])) for path in paths}


def held(text, sets):
    """The numbers of the lines of a shipped file that hold an edited value, or a name that becomes a table."""
    rows, table = set(), ""
    for row, line in enumerate(text.splitlines()):
        if line.startswith("["):
            table = f"{line.strip('[]')}."
        path = table + line.partition(" = ")[0]
        if any(parameter == path or parameter.startswith(f"{path}.") for parameter in sets):
            rows.add(row)
    return rows


def in_order(wanted, lines):
    """Whether all wanted lines are among the lines, in their order."""
    rest = iter(lines)
    return all(line in rest for line in wanted)


@PROPERTY
@given(case=edited(), newline=st.sampled_from(["\n", "\r\n"]), mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_a_saved_file_has_the_values_of_the_session(tmp_path_factory, case, newline, mark):
    name, sets = case
    path = tmp_path_factory.mktemp("saved") / f"{name}.toml"
    path.write_bytes(mark + QUESTIONS[name].document.text.replace("\n", newline).encode())
    document, scenario = asking(path, sets)
    saved = save(path, document, scenario)
    again = Scenario.open(path)
    assert values(again.program.parameters) == values(scenario.program.parameters)
    assert again.program.loaded.scenario.sweep == scenario.program.loaded.scenario.sweep
    assert again.program.loaded.scenario.sources == scenario.program.loaded.scenario.sources
    # Every other line is there, in its order, to the byte.
    raw = path.read_bytes()
    assert raw == mark + saved.text.encode()
    old, new = document.text.split("\n"), saved.text.split("\n")
    rows = held(document.text, sets)
    assert in_order([line for row, line in enumerate(old) if row not in rows], new)
    assert len(new) >= len(old)
    assert all(line.endswith("\r") == (newline == "\r\n") for line in new[:-1])
    # Nothing is left to do.
    save(path, saved, Scenario(saved))
    save(path, saved, scenario.reread(saved))
    assert path.read_bytes() == raw


DATA = {
    "platform": {"extends": "summit", "node": {"gpu_count": 4, "gpu": {"dram_bandwidth": "1 TB/s"}}},
    "parameters": {"depth": 2},
    "application": {
        "name": "Test",
        "rank_count": 16,
        "iteration_count": 10,
        "grid": {"scaling": "weak", "cells": {"x": 1000, "y": 1000}},
        "phases": {
            "halo": {"kind": "halo", "model": "postal", "neighbours": "faces"},
            "pause": {"kind": "overhead", "overhead_time": "3 us"},
        },
    },
}
# Parameter, what is typed, and what the file must then say.
TYPED = [
    (GPUS, "8", 8),
    ("platform.node_count", "100", 100),
    (MEMORY, " 2 TB/s", "2 TB/s"),
    ("platform.node.host_link.link_count", "3", 3),
    ("platform.network.inter_node.eager_limit", "32 KiB", "32 KiB"),
    ("platform.network.inter_node.postal.eager.latency", "3 us", "3 us"),
    ("parameters.depth", "= 2 * 3", "= 2 * 3"),
    ("parameters.share", "-1.5e-3", -1.5e-3),
    ("parameters.beyond", "18014398509481984", "18014398509481984"),
    ("application.name", 'a "quoted" \\ [name]', 'a "quoted" \\ [name]'),
    (RANKS, "9007199254740992", 9007199254740992),
    ("application.memory_size", "1 GB", "1 GB"),
    ("application.grid.periodic", "true", True),
    ("application.grid.cells.x", "= depth * 100", "= depth * 100"),
    ("application.grid.cells.z", "7", 7),
    ("application.grid.order", "fortran", "fortran"),
    (MODEL, "max_rate", "max_rate"),
    ("application.phases.halo.halo_width", "2", 2),
    ("application.phases.halo.exchange_count", "0", 0),
    ("application.phases.pause.overhead_time", "5 us", "5 us"),
]


class Layout:
    """Draws one of the many ways in which TOML can write the same tables."""

    def __init__(self, draw):
        self.draw = draw
        self.sections = []
        self.comments = 0

    def chosen(self, *options):
        return self.draw(st.sampled_from(options))

    def comment(self):
        self.comments += 1
        return f"# comment {self.comments}"

    def value(self, value):
        if isinstance(value, dict):
            inner = [f"{self.key(key)}{self.chosen(' = ', '=')}{self.value(item)}" for key, item in value.items()]
            padding = self.chosen(" ", "")
            return "{" + padding + ", ".join(inner) + padding + "}"
        if isinstance(value, str):
            return self.chosen(f'"{value}"', f"'{value}'")
        return str(value)

    def key(self, key):
        return self.chosen(key, key, key, f'"{key}"', f"'{key}'")

    def lines(self, table, path, lead=""):
        """The lines of a table; what gets a header of its own is put aside as a section."""
        for key, value in table.items():
            style = self.chosen("inline", "dotted", "header", "header") if isinstance(value, dict) else "plain"
            if style == "header":
                self.section(value, (*path, key))
            elif style == "dotted":
                yield from self.lines(value, (*path, key), f"{lead}{self.key(key)}{self.chosen('.', ' . ')}")
            else:
                if self.chosen(True, False, False):
                    yield self.chosen("", self.comment())
                yield f"{lead}{self.key(key)} = {self.value(value)}{self.chosen('', '', f'   {self.comment()}')}"

    def section(self, table, path):
        lines = list(self.lines(table, path))
        if not lines and self.chosen(True, False):
            return
        indent = self.chosen("", "", "  ")
        header = f"[{'.'.join(self.key(key) for key in path)}]{self.chosen('', f' {self.comment()}')}"
        above = [self.comment()] if self.chosen(True, False) else []
        self.sections.append([indent + line for line in (*above, header, *lines)])

    def text(self):
        data = {**DATA, "platform": self.chosen(DATA["platform"], "summit", {"extends": "summit"})}
        top = list(self.lines(data, ()))
        blocks = [top, *self.draw(st.permutations(self.sections))]
        gap = self.chosen("\n", "\n\n")
        text = self.chosen("", "# Question?\n\n") + gap.join("\n".join(block) for block in blocks)
        return (text + self.chosen("\n", "")).replace("\n", self.chosen("\n", "\r\n"))


def loads(text):
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError:
        return None


@st.composite
def layouts(draw):
    text = Layout(draw).text()
    # Some orders of headers and dotted keys are no TOML.
    assume(loads(text) is not None)
    changes = draw(st.lists(st.sampled_from(TYPED), min_size=1, max_size=6, unique_by=lambda item: item[0]))
    return text, changes, draw(st.sampled_from([None, None, "lassen"]))


@settings(PROPERTY, max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(layouts())
def test_however_a_file_is_laid_out_only_the_values_change(case):
    text, changes, platform = case
    sets = {path: written for path, written, _ in changes}
    new = after(text, sets, platform)
    expected = tomli.loads(text)
    if isinstance(expected["platform"], str) and any(path.startswith("platform.") for path in sets):
        expected["platform"] = {"extends": expected["platform"]}
    wanted = [(path, value) for path, _, value in changes]
    if platform is not None:
        wanted.append(("platform" if isinstance(expected["platform"], str) else "platform.extends", platform))
    for path, value in wanted:
        *tables, last = path.split(".")
        table = expected
        for key in tables:
            table = table.setdefault(key, {})
        table[last] = value
    assert tomli.loads(new) == expected
    assert comments(new) == comments(text)
    assert new.replace("\r\n", "").count("\n") == (0 if "\r\n" in text else new.count("\n"))
    removed = [line for line in text.splitlines() if line not in new.splitlines()]
    names = {key for path, _ in wanted for key in path.split(".")}
    assert all(any(name in line for name in names) for line in removed)
    assert after(new, sets, platform) == new


def comments(text):
    return re.findall(r"# comment \d+", text)


# --- Saving ----------------------------------------------------------------------------------------------------------

SETS = {GPUS: "8", "application.grid.periodic": "true", "parameters.depth": "= 2 * 3", "parameters.size": "6 B"}


def left(path):
    """What lies in the folder of a file, and the file's bytes."""
    return sorted(path.parent.iterdir()), path.read_bytes()


def refused(path, document, scenario, message, error=UsageError):
    before = left(path)
    with pytest.raises(error, match=message):
        save(path, document, scenario)
    assert left(path) == before


def test_the_document_of_a_saved_file_is_the_one_that_a_fresh_start_reads(file):
    saved, read = save(file, *asking(file, SETS, "lassen")), read_document(file)
    assert (saved.text, saved.data, saved.name, saved.folder) == (read.text, read.data, read.name, read.folder)
    wanted = Scenario(parse_document(SMALL, "s.toml"), "lassen", SETS)
    assert values(Scenario(saved).program.parameters) == values(wanted.program.parameters)


def test_nothing_to_change_parameters_the_file_alone(file):
    before = file.stat()
    assert save(file, *asking(file, {})).text == SMALL
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_saved_file_keeps_its_permissions(file, mode):
    file.chmod(mode)
    save(file, *asking(file, SETS))
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert list(file.parent.iterdir()) == [file]


def test_a_link_stays_a_link_and_its_file_is_saved(file, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "base.toml").write_text('extends = "minife"\n')
    file.write_text('extends = "base"\n')
    link = tmp_path / "links" / "l.toml"
    link.symlink_to(file)
    saved = save(file, *asking(link, {RANKS: "64"}))
    saved = save(link, saved, Scenario(saved, None, {RANKS: "64"}))
    assert link.is_symlink()
    assert file.read_text() == 'extends = "base"\n\n[application]\nrank_count = 64\n'
    assert Scenario(saved).program.parameters[RANKS].value == 64


def test_a_link_of_another_kind_is_written_key_by_key(file):
    link = {
        "kind": "pcie", "generation": "3", "pinned_read_latency": "1 us", "pinned_write_latency": "1 us",
        "pageable_read_latency": "1 us", "pageable_write_latency": "1 us",
    }  # fmt: skip
    document, scenario = asking(file, {f"platform.node.host_link.{key}": value for key, value in link.items()})
    save(file, document, scenario)
    assert values(Scenario.open(file).program.parameters) == values(scenario.program.parameters)
    assert "platform.node.host_link.link_count" not in scenario.program.parameters


def test_keys_that_a_phase_of_another_kind_cannot_have_are_not_saved(file):
    """Edits replace the table of another kind, but a file that states both is wrong."""
    sets = {"application.phases.halo.kind": "overhead", "application.phases.halo.overhead_time": "3 us"}
    refused(file, *asking(file, sets), r"s.toml: not saved: the file would not load any more: .*unknown key")


@pytest.mark.parametrize("found", [f"{SMALL}# another\n", "", SMALL.replace("\n", "\r\n"), f"\ufeff\ufeff{SMALL}"])
def test_a_file_that_changed_on_disk_is_not_overwritten(file, found):
    document, scenario = asking(file, SETS)
    file.write_bytes(found.encode())
    refused(file, document, scenario, "s.toml: not saved: the file has changed on disk", ChangedOnDiskError)
    file.write_bytes(b"\xff\xfe")
    refused(file, document, scenario, "s.toml: not saved: the file has changed on disk", ChangedOnDiskError)


def test_a_file_that_its_owner_made_read_only_is_not_replaced(file):
    document, scenario = asking(file, SETS)
    file.chmod(0o444)
    refused(file, document, scenario, "s.toml: not saved: the file is read-only")


def test_a_file_in_a_read_only_folder_is_not_replaced(file, monkeypatch):
    def denied(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    document, scenario = asking(file, SETS)
    file.parent.chmod(0o555)
    if os.geteuid() == 0:
        monkeypatch.setattr("tempfile.mkstemp", denied)
    refused(file, document, scenario, "s.toml: cannot be written: Permission denied")
    file.parent.chmod(0o755)


def test_a_full_disk_parameters_the_file_and_nothing_else(file, monkeypatch):
    def full(path, data):
        with path.open("wb") as half:
            half.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    document, scenario = asking(file, SETS)
    monkeypatch.setattr(Path, "write_bytes", full)
    refused(file, document, scenario, "s.toml: cannot be written: No space left on device")


def test_a_missing_folder_is_an_error(tmp_path):
    path = tmp_path / "gone" / "s.toml"
    path.parent.mkdir()
    path.write_text(SMALL)
    document, scenario = asking(path, SETS)
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(UsageError, match=r"s.toml: cannot be read: No such file or directory"):
        save(path, document, scenario)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpu_count = 8", "gpu_count = 9", f"`{GPUS}` would be 9 instead of 8"),
        ("= 2 * 3", "= 3 * 2", "`parameters.depth` would be = 3 \\* 2 instead of = 2 \\* 3"),
        ("periodic = true\n", "", "`application.grid.periodic` would be false instead of true"),
        ("iteration_count=10", "iteration_count=11", "`application.iteration_count` would be 11 instead of 10"),
        ('depth = "= 2 * 3"\n', "", "`parameters.depth` would be missing instead of = 2 \\* 3"),
        ("[parameters]\n", "[parameters]\nn = 1\n", "`parameters.n` would be 1 instead of missing"),
        ('size = "6 B"', 'size = "6 s"', "`parameters.size` would be 6 s instead of 6 B"),
        ("[parameters]\n", "[parameters\n", "the file would not load any more: .*not TOML"),
        ("rank_count = 16", "rank_count = 0", "the file would not load any more: .*of at least 1"),
    ],
)
def test_a_file_that_would_read_differently_is_not_saved(file, monkeypatch, old, new, message):
    document, scenario = asking(file, SETS)
    right = rewritten(document, SETS)
    assert right.count(old) == 1
    monkeypatch.setattr(whatif.files.scenario_edits, "rewritten", lambda *_: right.replace(old, new))
    refused(file, document, scenario, f"s.toml: not saved: .*{message}")


def test_overrides_that_no_file_can_hold_are_not_saved(file):
    refused(file, *asking(file, {"application.name": "\udcff"}), "s.toml: not saved: .*can't encode")
    file.write_text(SMALL + "#" * (999_990 - len(SMALL)))
    document, scenario = asking(file, SETS)
    refused(file, document, scenario, "s.toml: not saved: it would be larger than 1000 kB")


def test_tomlkit_is_imported_when_something_is_written():
    code = "import sys, whatif.files.scenario_edits; sys.exit('tomlkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_difference_shows_the_changed_lines():
    assert difference(SMALL, SMALL, "s.toml") == ""
    assert difference(SMALL, after(SMALL, {RANKS: "96"}), "s.toml").splitlines() == [
        "--- s.toml",
        "+++ s.toml",
        "@@ -5,7 +5,7 @@",
        " ",
        " [application]",
        " name = 'Test'           # in other quotes",
        "-rank_count = 16",
        "+rank_count = 96",
        " iteration_count=10",
        " ",
        " # The grid is square.",
    ]


# --- The same edits elsewhere ----------------------------------------------------------------------------------------


def swept(scenario, *options):
    """The session of a question over axes given as on a command line."""
    session = Session.start(scenario)
    return session.over(tuple(parse_option(text, session.program, DEFAULT_MAXIMUM_POINTS) for text in options))


OPEN = Scenario.open
EDITS = {GPUS: "8", MEMORY: "1 TB/s", RANKS: "= 2 * 32", "application.grid.periodic": "true"}
OVERHEAD = {"application.phases.halo.kind": "overhead", "application.phases.halo.overhead_time": "3 us"}
SESSIONS = {
    "one parameter": lambda: Session.start(OPEN("jacobi2d", overrides={GPUS: "8", MEMORY: "1 TB/s"})),
    "two parameters": lambda: swept(
        OPEN("jacobi2d", platform="lassen", overrides=EDITS),
        "application.phases.stencil.launch_count=1, 2",
        "application.phases.reduce.launch_count=1 .. 4 step 1",
    ),
    "a choice, half of it infeasible": lambda: swept(
        OPEN("jacobi2d", platform="bridges", overrides={RANKS: "64"}), f"{MODEL}=postal, k_model", f"{GPUS}=1, 2"
    ),
    "platforms": lambda: swept(OPEN("minimd", overrides={"parameters.cells": "32"}), "platform=summit, lassen"),
    "tied parameters": lambda: Session.start(
        OPEN("minife_devices", overrides={"application.phases.dot.launch_count": "4"})
    ),
    "a list of numbers": lambda: Session.start(OPEN("minife_gpus_per_node", overrides={RANKS: "128"})),
    "another kind": lambda: Session.start(OPEN("jacobi2d", overrides=OVERHEAD)),
    "no sweep": lambda: Session.start(OPEN("jacobi2d_strong", overrides={RANKS: "96"})).over(()),
}
"""Sessions with edits, other platforms, and sweeps of every kind."""


@pytest.fixture(scope="module", params=SESSIONS)
def session(request):
    return SESSIONS[request.param]()


def answered(arguments):
    """The document that the program prints."""
    done = CliRunner().invoke(program, [*arguments, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def check_rows(document, session):
    """The printed rows are the session's."""
    rows, table = document["rows"], session.result.table()
    assert len(rows) == len(table)
    assert document["axes"] == list(session.grid.parameters())
    assert document["platform"] == session.result.program.loaded.scenario.platform.name
    for name, column in table.columns.items():
        if name in ("infeasible", "extrapolated"):
            assert [row.get(name, "") for row in rows] == column.values.tolist()
        elif column.values.dtype == object:
            assert [row[name] for row in rows] == column.values.tolist()
        else:
            phase = name.removeprefix("terms.")
            printed = [row["terms"][phase] if phase != name else row[name] for row in rows]
            np.testing.assert_allclose(np.array(printed, float), column.values, rtol=1e-12, atol=0, equal_nan=True)


def test_a_command_line_gives_the_rows_of_the_session(session):
    line = command_line(session.scenario, session.grid.axes)
    assert "\n" not in line
    whatif_, *arguments = shlex.split(line)
    assert whatif_ == "whatif"
    check_rows(answered(arguments), session)


def test_a_patch_gives_the_rows_of_the_session(session, tmp_path):
    path = tmp_path / "patch.toml"
    path.write_text(toml_patch(session.scenario, session.grid.axes), encoding="utf-8")
    check_rows(answered(["run", str(path)]), session)


def test_a_command_line_is_quoted_for_a_shell():
    scenario = Scenario.open("jacobi2d", platform="lassen", overrides={GPUS: "8", MEMORY: "1 TB/s"})
    axis = parse_option(f"{RANKS}=1 .. 8 step 1; application.iteration_count=1..8 step 1", scenario.program, 100)
    assert command_line(scenario, [axis]) == (
        f"whatif run jacobi2d --platform lassen --set {GPUS}=8 --set '{MEMORY}=1 TB/s' "
        f"--sweep '{RANKS}=1 .. 8 step 1; application.iteration_count=1..8 step 1'"
    )
    assert command_line(Scenario.open("jacobi2d"), ()) == "whatif run jacobi2d --point"


def test_a_patch_is_a_valid_scenario_file():
    scenario = Scenario.open("jacobi2d", platform="lassen", overrides={GPUS: "8", "application.grid.periodic": "true"})
    axis = parse_option(f"{RANKS}=1 .. 8 step 1", scenario.program, 100)
    assert toml_patch(scenario, [axis]) == (
        "# Variant of jacobi2d.\n\n"
        'format = 1\nextends = "jacobi2d"\n\n[platform]\nextends = "lassen"\n\n[platform.node]\ngpu_count = 8\n\n'
        "[application.grid]\nperiodic = true\n\n"
        f'[sweep.rank_count]\n"{RANKS}" = "1 .. 8 step 1"\n'
    )


def test_a_file_of_ones_own_and_a_folder_of_platforms(tmp_path):
    folder = tmp_path / "some machines"
    folder.mkdir()
    (folder / "mine.toml").write_text('extends = "lassen"\nname = "Mine"\nnode_count = 7\n')
    path = tmp_path / "it's mine.toml"
    path.write_text(SMALL)
    scenario = Scenario.open(path, platform="mine", overrides={GPUS: "2"}, folders=(folder,))
    session = Session.start(scenario)
    _, *arguments = shlex.split(command_line(scenario, session.grid.axes))
    check_rows(answered(arguments), session)
    with pytest.raises(UsageError, match=r"it's mine\.toml: cannot be extended by name"):
        toml_patch(scenario, session.grid.axes)
    other = path.rename(tmp_path / "mine.txt")
    with pytest.raises(UsageError, match=r"mine\.txt: cannot be extended by name"):
        toml_patch(Scenario.open(other), ())
    other.rename(path)
    document = save(path, scenario.document, scenario)
    assert document.data["platform"] == {"extends": "mine", "node": {"gpu_count": 2}}
    plain = path.rename(tmp_path / "own.toml")
    (tmp_path / "mine.toml").write_text((folder / "mine.toml").read_text())
    session = Session.start(Scenario.open(plain, overrides={RANKS: "4"}))
    (tmp_path / "patch.toml").write_text(toml_patch(session.scenario, session.grid.axes))
    check_rows(answered(["run", str(tmp_path / "patch.toml")]), session)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_template_runs_on_every_platform(tmp_path, platform):
    path = tmp_path / "new.toml"
    path.write_text(template('My "new" {code} [2]', platform))
    rows = answered(["run", str(path)])["rows"]
    assert len(rows) == 1
    assert set(rows[0]["terms"]) == {"halo", "update"}
    assert min(rows[0]["terms"].values()) > 0
    scenario = Scenario.open(path)
    assert scenario.program.loaded.question == "Where does an iteration of this application spend its time?"
    assert scenario.program.parameters["application.name"].value == 'My "new" {code} [2]'
    assert scenario.program.loaded.scenario.platform == load_platform(platform)[0]
    assert path.read_text().count("#") >= 6
    save(path, *asking(path, {"platform.node.socket_count": "2"}))
    assert Scenario.open(path).program.parameters["platform.node.socket_count"].value == 2


@pytest.mark.parametrize("name", ["summit", "v100-sxm2-16gb"])
def test_a_scenario_is_not_saved_under_the_name_of_its_platform_or_of_a_part(tmp_path, name):
    """The next one on that platform would be read from the scenario."""
    with pytest.raises(UsageError, match=f"not saved: `{name}` is a platform or part of the scenario"):
        save_as(tmp_path / f"{name}.toml", Scenario.open("jacobi2d"))
    assert not list(tmp_path.iterdir())
    save_as(tmp_path / "lassen.toml", Scenario.open("jacobi2d"))
    assert Scenario.open(tmp_path / "lassen.toml").program


def test_a_scenario_saved_elsewhere_still_finds_its_schema(tmp_path):
    path = tmp_path / "mine.toml"
    save_as(path, Scenario.open("jacobi2d"))
    directive = path.read_text().splitlines()[0].removeprefix("#:schema ")
    schema = json.loads((tmp_path / directive).read_text())
    assert schema["$id"].startswith("urn:whatif:schema:scenario")


def test_a_scenario_saved_elsewhere_keeps_its_measured_runs(tmp_path):
    scenario = Scenario.open("jacobi2d")
    runs = tmp_path / "jacobi2d_runs.csv"
    assert save_as(tmp_path / "mine.toml", scenario) == f", its runs to {runs}"
    assert save_as(tmp_path / "same.toml", scenario) == ""
    assert len(measured_runs(Scenario.open(tmp_path / "mine.toml"))) == len(measured_runs(scenario)) > 0
    runs.write_text("a file of the user\n")
    assert save_as(tmp_path / "other.toml", scenario) == f"; {runs} is another file than its runs"
    assert runs.read_text() == "a file of the user\n"
    assert save_as(tmp_path / "llama.toml", Scenario.open("llama_training")) == ""
