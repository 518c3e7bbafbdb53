"""The wheel holds the shipped files, and works without the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_wheel_holds_platforms_scenarios_schemas_data_and_styles(unpacked):
    shipped = {path.relative_to(unpacked / "whatif" / "_shipped").as_posix() for path in unpacked.rglob("_shipped/*/*")}
    ours = {
        path.relative_to(ROOT).as_posix()
        for kind in ("platforms", "scenarios", "studies", "schemas", "validation")
        for path in ROOT.glob(f"{kind}/*")
    }
    assert shipped == ours
    assert (unpacked / "whatif" / "py.typed").is_file()
    beside = (path for kind in ("tcss", "jinja") for path in (ROOT / "whatif").rglob(f"*.{kind}"))
    styles = {path.relative_to(ROOT).as_posix() for path in beside}
    assert styles
    assert all((unpacked / path).is_file() for path in styles)


def test_wheel_answers_from_any_directory(unpacked, tmp_path):
    code = f"import sys; sys.path.insert(0, {str(unpacked)!r}); from whatif.cli.main import main; sys.argv[1:] = "
    for words, expected in ((["list", "scenarios"], "jacobi2d"), (["run", "minimd"], "iteration_time")):
        done = subprocess.run(
            [sys.executable, "-c", f"{code}{words!r}; main()"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


def test_wheel_finds_its_own_files_not_the_checkouts(unpacked, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(unpacked)!r}); "
        "from whatif.schema.shipped import shipped_folder; print(shipped_folder('platforms'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(unpacked / "whatif" / "_shipped" / "platforms")
