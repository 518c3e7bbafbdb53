"""The person's editor: its command line, and the line of a parameter."""

from pathlib import Path

import pytest

from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.files.editors import FilePlace, came_with_program, editor_command, place_of

FILE = Path("/x/my file.toml")
PLACE = FilePlace(FILE, 7)


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("nano", ["nano", "+7", str(FILE)]),
        ("/usr/bin/vim -p", ["/usr/bin/vim", "-p", "+7", str(FILE)]),
        ("code", ["code", "--wait", "-g", f"{FILE}:7"]),
        ("code --wait", ["code", "--wait", "-g", f"{FILE}:7"]),
        ("hx", ["hx", f"{FILE}:7"]),
        ("'/opt/sublime text/subl' -n", ["/opt/sublime text/subl", "-n", "--wait", f"{FILE}:7"]),
        ("notepad.exe", ["notepad.exe", str(FILE)]),
    ],
)
def test_editor_opens_the_file_at_the_line(editor, command):
    assert editor_command({"EDITOR": editor}, PLACE) == command


def test_visual_precedes_editor():
    assert editor_command({"VISUAL": "emacs", "EDITOR": "ed"}, PLACE)[0] == "emacs"
    assert editor_command({"VISUAL": " ", "EDITOR": "ed"}, PLACE)[0] == "ed"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "no editor is set; name one before the start, such as `export EDITOR=nano`"),
        ({"EDITOR": "vi 'x"}, "$EDITOR = `vi 'x`: no closing quotation"),
    ],
)
def test_missing_editor_is_explained(environment, message):
    with pytest.raises(UsageError) as caught:
        editor_command(environment, PLACE)
    assert str(caught.value) == message


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "box.toml").write_text(
        'extends = "summit"\nname = "Box"\n\n[node]\ngpu_count = 2\n\n[node.gpu]\nextends = "h200-sxm"\n'
    )
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "jacobi2d"\nplatform = "box"\n\n[application]\n# many\nrank_count = 24\ngrid.cells.x = 512\n'
    )
    return file


@pytest.mark.parametrize(
    ("path", "name", "line"),
    [
        ("application.rank_count", "mine.toml", 6),
        ("application.grid.cells.x", "mine.toml", 7),
        ("application.grid.cells.y", "mine.toml", 7),
        ("application.phases.stencil.dram_size", "mine.toml", 4),
        ("platform.node.gpu_count", "box.toml", 5),
        ("platform.node.gpu.extends", "box.toml", 8),
        ("platform.node.gpu.dram_bandwidth", "box.toml", 7),
        ("", "mine.toml", 1),
    ],
)
def test_place_is_the_line_that_states_the_parameter_or_the_nearest_table(mine, path, name, line):
    loaded = Scenario.open(mine).program.loaded
    assert place_of(path, loaded, mine) == FilePlace((mine.parent / name).resolve(), line)


def test_edited_value_is_placed_in_the_file(mine):
    loaded = Scenario.open(mine, overrides={"application.rank_count": "48"}).program.loaded
    assert place_of("application.rank_count", loaded, mine) == FilePlace(mine.resolve(), 6)


def test_shipped_files_have_no_place():
    scenario = Scenario.open("jacobi2d")
    file = Path(scenario.document.name)
    assert came_with_program(file)
    assert place_of("application.rank_count", scenario.program.loaded, file) is None
    assert place_of("platform.node.gpu_count", scenario.program.loaded, file) is None
