"""`whatif import`: the content of a file chooses the verb, and corrects a wrong one."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile

import pytest

from tests.paths import ROOT

DATA = ROOT / "tests" / "data"
FILES = {
    "traces/goal/binary_tree_32.goal": "trace",
    "traces/simgrid/actions_gather.txt": "trace",
    "traces/dumpi/testtrace.meta": "trace",
    "profiles/ahead/lammps_summit.nvvp": "profile",
    "profiles/kineto/a100_trace.json.gz": "profile",
    "gpuroofperf/kernel_params/jacobi2d/jacobi2d.json": "kernels",
    "gpuroofperf/gpu_params/b.csv": "gpu",
    "importers/host/stream_e5_2695v4.txt": "gpu",
    "importers/models/minimind_qwen3.json": "model",
    "runs/caliper/27_cores.cali": "runs",
    "hpl/hpccoutf.txt": "logs",
}


@pytest.mark.parametrize("name", FILES)
def test_the_content_of_a_file_chooses_the_verb(whatif_main, name):
    path = str(DATA / name)
    code, out, err = whatif_main("import", path, "--format", "json")
    assert code == 0, err
    assert err.startswith(f"{path}: read by `whatif import {FILES[name]}`\n")
    assert out == whatif_main("import", FILES[name], path, "--format", "json")[1]


@pytest.mark.parametrize("verb", ["trace", "profile", "kernels", "gpu", "network", "model", "runs"])
@pytest.mark.parametrize("name", FILES)
def test_the_verb_that_reads_a_refused_file_is_told(whatif_main, name, verb):
    path, right = str(DATA / name), FILES[name]
    code, out, err = whatif_main("import", verb, path)
    if verb == right:
        assert code == 0
    elif code:
        assert out == ""
        named = "`whatif import logs` reads the output of applications" if (verb, right) == ("runs", "logs") else ""
        assert err.endswith(f"; {named or f'`whatif import {right} {path}` reads it'}\n")


FITS = ("collectives", "grid", "host", "kernel", "network", "regression", "scaling", "transfer")


@pytest.mark.parametrize("verb", FITS)
@pytest.mark.parametrize(
    ("name", "right"), [("hpl/hpccoutf.txt", "logs"), ("traces/goal/binary_tree_32.goal", "trace")]
)
def test_the_verb_that_reads_a_file_is_told_where_a_fit_refuses_it(whatif_main, name, right, verb):
    code, out, err = whatif_main("fit", verb, str(DATA / name), *(["y ~ x"] if verb == "regression" else []))
    assert code in (2, 3)
    assert out == ""
    assert f"`whatif import {right}" in err


def test_a_sheet_is_told_which_verbs_read_it(whatif_main, tmp_path):
    (tmp_path / "s.csv").write_text("ranks,time\n1,2\n")
    code, out, err = whatif_main("import", "s.csv")
    assert (code, out) == (2, "")
    assert err == (
        "whatif: s.csv: a table may hold runs, messages or copies: `whatif import runs`, `import network` or "
        "`import transfer` reads it\n"
    )


def test_a_missing_an_empty_and_an_unknown_file_are_told_apart(whatif_main, tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "empty.toml").touch()
    (tmp_path / "bytes.toml").write_bytes(b"\x00\x01\x02")
    (tmp_path / "words.txt").write_text("some words\n")
    (tmp_path / "HPL.dat").write_text("HPLinpack benchmark input file\n")
    (tmp_path / "cut.json").write_text('{"kept": [\n{"x": 1')
    (tmp_path / "raw.bin").write_bytes(b"\x00\x01\x02")
    (tmp_path / "own.toml").write_text('platform = "summit"\n')
    expected = {
        "none.txt": "none.txt: no such file\n",
        "empty.txt": "empty.txt: the file is empty\n",
        "empty.csv": "empty.csv: the file is empty\n",
        "words.txt": "words.txt: not recognised by its content; name its kind: ",
        "HPL.dat": "HPL.dat: an input of HPL; `whatif hpl HPL.dat --platform PLATFORM` simulates its runs\n",
        "cut.json": "cut.json:3:1: not JSON: ",
        "raw.bin": "raw.bin: this is a binary file, not text",
        "empty.toml": "empty.toml: the file is empty\n",
        "bytes.toml": "bytes.toml: this is a binary file, not text\n",
        "own.toml": "own.toml: not a file of another program; `whatif check own.toml` reads it\n",
        str(tmp_path): f"{tmp_path}: not recognised by its content; name its kind: ",
        "netwrok": "no command `netwrok`; did you mean `network`?",
    }
    for name, message in expected.items():
        code, out, err = whatif_main("import", name)
        unreadable = name in ("empty.txt", "empty.csv", "empty.toml", "bytes.toml", "cut.json", "raw.bin")
        assert (code, out) == (3 if unreadable else 2, ""), name
        assert err.startswith(f"whatif: {message}")


@pytest.mark.parametrize("verb", ["trace", "profile", "kernels", "gpu", "network", "model", "runs", "logs", "transfer"])
def test_an_empty_file_is_unreadable_for_each_verb(whatif_main, tmp_path, verb):
    (tmp_path / "empty.txt").touch()
    code, out, err = whatif_main("import", verb, "empty.txt")
    assert (code, out) == (3, "")
    assert err.startswith("whatif: empty.txt:")


def test_a_misspelt_configuration_of_a_transformer_is_no_table_of_runs(whatif_main, tmp_path):
    (tmp_path / "c.json").write_text('{"model_type": "llama", "hiden_size": 4096, "num_hidden_layers": 32}')
    code, out, err = whatif_main("import", "c.json")
    assert (code, out) == (3, "")
    assert err.endswith("vocab_size; `hiden_size`: did you mean `hidden_size`?\n")
    assert whatif_main("import", "model", "c.json")[0] == 3


def test_an_error_of_the_right_verb_stays(whatif_main, tmp_path):
    (tmp_path / "s.goal").write_text("num_ranks 2\nrank 0 {\n")
    code, _, err = whatif_main("import", "trace", "s.goal")
    assert code == 3
    assert "reads it" not in err


def test_an_output_of_hpl_is_no_input_of_it(whatif_main):
    file = str(DATA / "hpl" / "hpccoutf.txt")
    code, _, err = whatif_main("hpl", file, "--platform", "dahu")
    assert code == 3
    assert f"an output of HPL: `whatif hpl HPL.dat --measured {file}` compares it, `whatif import logs {file}` p" in err


def _workbook(content):
    """The bytes of a ZIP archive with a sheet, as spreadsheets write them."""
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr("xl/sheet1.xml", content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_workbook, "a workbook of a spreadsheet or a ZIP archive: save the sheet as CSV, or unpack the archive"),
        (lzma.compress, "a file packed with xz: unpack it with `unxz`"),
        (b"\x28\xb5\x2f\xfd".__add__, "a file packed with zstd: unpack it with `unzstd`"),
        (bz2.compress, "a file packed with bzip2: unpack it with `bunzip2`"),
    ],
)
def test_a_workbook_and_packed_files_are_told_what_to_do(whatif_main, tmp_path, write, said):
    (tmp_path / "runs.file").write_bytes(write(b"ranks,time [s]\n1,2\n"))
    code, out, err = whatif_main("import", "runs", "runs.file")
    assert (code, out, err) == (3, "", f"whatif: runs.file: this is {said}\n")
