"""What docs/processors.md shows works: every command, and the output of its example.

`WHATIF_WRITE_PROCESSORS=1 pytest tests/docs/test_processors.py` writes the output.
"""

from __future__ import annotations

import os
import re
import shlex

from tests.paths import DATA, ROOT

PAGE = ROOT / "docs" / "processors.md"
WRITE = os.environ.get("WHATIF_WRITE_PROCESSORS") == "1"
HOST = DATA / "importers" / "host"


def blocks():
    return [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)]


def test_commands_of_the_page_run(tmp_path, whatif_main):
    (tmp_path / "stream.txt").write_bytes((HOST / "stream_e5_2695v4.txt").read_bytes())
    (tmp_path / "likwid.txt").write_bytes((HOST / "likwid_bench.txt").read_bytes())
    commands = [command for block in blocks() for command in block]
    assert len(commands) == 8
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "whatif"
        code, out, error = whatif_main(*words[1:])
        assert code == 0, (command, error)
        assert out.strip(), command


def shown(output):
    """The lines of the output that the page shows: total, kernels and communication."""
    wanted = ("total_time", "kernel_time", "communication_time")
    return [line for line in output.splitlines() if line.startswith(wanted)]


def test_the_example_prints_what_the_page_shows(whatif_main):
    parts = []
    for name, command in zip(("Fugaku", "2,000 nodes"), blocks()[0], strict=True):
        _, output, _ = whatif_main(*shlex.split(command)[1:])
        parts.append("\n".join(f"    {line.rstrip()}" for line in [f"{name}:", *shown(output)]))
    page = PAGE.read_text(encoding="utf-8")
    before, start, rest = page.partition("<!-- example -->\n")
    _, end, after = rest.partition("<!-- end of example -->")
    written = "".join((before, start, "\n", "\n\n".join(parts), "\n\n", end, after))
    if WRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert page == written or WRITE


def test_one_rank_for_each_core_does_not_fit_a_node_of_fugaku(whatif_main):
    words = blocks()[0][0].replace("--set application.ranks_per_node=4", "")
    code, _, error = whatif_main(*shlex.split(words)[1:])
    assert code != 0
    assert "does not fit the node" in error
