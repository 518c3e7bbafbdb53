"""Answer of docs/processors.md that is not in its sessions."""

from __future__ import annotations


def test_one_rank_for_each_core_does_not_fit_a_node_of_fugaku(whatif_main):
    ranks = ("--set", "application.rank_count=8000", "--set", "application.memory_size=3 GB")
    code, _, error = whatif_main("run", "minife", "--platform", "fugaku", *ranks)
    assert code == 4
    assert "does not fit the node" in error
