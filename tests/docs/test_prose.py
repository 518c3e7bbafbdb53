"""Numbers in sentences of the documentation that no console block prints."""

from __future__ import annotations

import tomli

import whatif
from tests.paths import ROOT


def prose(page):
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def test_start_states_the_shares_and_the_messages_with_more_gpus_in_a_node():
    present, more = (whatif.run("jacobi2d", overrides=sets) for sets in ({}, {"platform.node.gpu_count": 8}))
    shares = [100 * float(present[name] / present["iteration_time"]) for name in ("kernel_time", "communication_time")]
    times = [1e6 * float(result["communication_time"]) for result in (more, present)]
    page = prose("start.md")
    assert "kernels take {:.0f} % of the time, the messages (`halo`) {:.1f} %.".format(*shares) in page
    assert "messages take {:.0f} us instead of {:.0f} us".format(*times) in page


def test_cost_energy_names_the_machines_with_a_price():
    files = [tomli.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "platforms").glob("*.toml")]
    bought = sorted(data["name"] for data in files if "machine_price" in data.get("price", {}))
    rented = [data["name"] for data in files if "node_rate" in data.get("price", {})]
    stated = f"Seven have a price: {', '.join(bought[:-1])} and {bought[-1]} that of a contract"
    assert (len(bought), len(rented)) == (4, 3)
    assert all(name.startswith("AWS") for name in rented)
    assert stated in prose("cost_energy.md")


def test_pages_state_how_many_training_steps_were_measured(compared):
    count = len(compared("training"))
    assert f"prints each of {count} measured steps" in prose("transformers.md")
    assert f"the errors at {count} measured steps" in prose("tutorials/transformer.md")
