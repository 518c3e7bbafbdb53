"""The program starts where POSIX modules are missing, as on Windows."""

import subprocess
import sys
import textwrap

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
WITHOUT_POSIX = f"""
import asyncio, os, signal, sys
from types import ModuleType
# Textual picks its driver by the name of the system.
os.environ["TEXTUAL_DRIVER"] = "textual.drivers.headless_driver:HeadlessDriver"
for name in {MODULES!r}:
    sys.modules[name] = None
del signal.SIGHUP
# Locks from the current position on, as the one of Windows does.
sys.modules["msvcrt"] = msvcrt = ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
msvcrt.locking = lambda file, mode, count: os.lockf(file, os.F_TLOCK, count)
"""


def run_without_posix(code, *arguments):
    """What a program prints in a Python without the POSIX modules."""
    words = [sys.executable, "-W", "error", "-c", WITHOUT_POSIX + textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_the_front_ends_imports_without_posix_modules():
    code = """
        import importlib, pkgutil
        import whatif.cli, whatif.tui
        names = [
            module.name
            for package in (whatif.cli, whatif.tui)
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        ]
        for name in names:
            importlib.import_module(name)
        print(len(names))
    """
    assert int(run_without_posix(code)) > 100


KEEP = """
    from pathlib import Path
    from whatif.tui.files.recovery import Recovery

    recovery = Recovery(Path("scenario.toml"), Path(sys.argv[1]))
    recovery.keep(["set a = 1"])
"""
LOST = """
    from pathlib import Path
    from whatif.tui.files.recovery import Recovery

    lost = Recovery(Path("scenario.toml"), Path(sys.argv[1])).lost()
    print(lost and lost.lines)
"""


def test_recovery_files_are_locked_and_found_without_fcntl(tmp_path):
    run_while_kept = (
        f"{KEEP}\n    import subprocess\n    print(subprocess.check_output(sys.argv[2:], text=True).strip())"
    )
    lost = WITHOUT_POSIX + textwrap.dedent(LOST)
    assert run_without_posix(run_while_kept, tmp_path, sys.executable, "-c", lost, tmp_path).strip() == "None"
    assert run_without_posix(LOST, tmp_path).strip() == "('set a = 1',)"
    assert run_without_posix(f"{KEEP}\n    recovery.forget()", tmp_path) == ""
    assert [path.stat().st_size > 0 for path in tmp_path.iterdir()] == [True]


def test_explorer_starts_edits_and_quits_without_posix_modules(tmp_path):
    code = """
        from pathlib import Path
        from whatif.core.scenario import Scenario
        from whatif.tui.app import Explorer
        from whatif.tui.commands.explorer_commands import Edit

        async def main():
            app = Explorer(Scenario.open("jacobi2d"), recovery_folder=Path(sys.argv[1]))
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.pause(0.2)
                app.runner.ask(Edit("platform.node.gpu_count", "8"))
                await app.runner.idle()
                app.file_sync.write_down()
                print(app.state.unsaved())

        asyncio.run(main())
    """
    assert run_without_posix(code, tmp_path).strip() == "{'platform.node.gpu_count': '8'}"
    (kept,) = tmp_path.iterdir()
    assert "set platform.node.gpu_count = 8" in kept.read_text()
