"""Random keys, texts, clicks and resizes: nothing raises, the file stays valid, and undo leads back to the start.

`make monkey` does 5,000; `WHATIF_MONKEY_SEED` chooses others.
"""

import os
import shutil

import pytest

from tests.monkey import play_on
from whatif.schema.shipped import shipped_folder

ACTIONS = int(os.environ.get("WHATIF_MONKEY", "150"))
SEED = int(os.environ.get("WHATIF_MONKEY_SEED", "1"))
SCENARIOS = ("jacobi2d", "minimd", "minife_devices")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_random_actions_do_no_harm(scenario, tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "given.toml"
    shutil.copy(shipped_folder("scenarios") / f"{scenario}.toml", path)
    seed = 1000 * SEED + SCENARIOS.index(scenario)
    print(f"seed {seed}")
    play_on(path, seed, -(-ACTIONS // len(SCENARIOS)))
