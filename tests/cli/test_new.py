"""`whatif new`: the files it writes, what it says, and that it refuses to overwrite."""

import tomli

MACHINE = ("--gpu", "h100-sxm5-80gb", "--gpus-per-node", "4", "--network", "slingshot-11", "--nodes", "8")


def test_a_scenario_with_a_machine_of_parts_runs_at_once(whatif_main, tmp_path):
    code, out, err = whatif_main("new", "mine", *MACHINE, "--phase", "stencil", "--phase", "sum=allreduce")
    assert (code, out) == (0, "")
    assert err.splitlines() == ["written: mine_machine.toml", "written: mine.toml"]
    phases = tomli.loads((tmp_path / "mine.toml").read_text())["application"]["phases"]
    assert list(phases) == ["stencil_halo", "stencil_update", "sum"]
    assert whatif_main("run", "mine.toml", "--point")[0] == 0


def test_ranks_of_a_part_of_the_machine_are_told_with_all_of_it(whatif_main, tmp_path):
    assert whatif_main("new", "mine", *MACHINE)[0] == 0
    assert " 16                 # processes, each on one of 32 GPUs\n" in (tmp_path / "mine.toml").read_text()
    assert whatif_main("new", "small", *MACHINE[:4])[0] == 0
    assert " 4                  # processes, one for each GPU\n" in (tmp_path / "small.toml").read_text()


def test_the_name_of_a_shipped_scenario_is_told_with_the_command_for_the_file(whatif_main):
    code, _, err = whatif_main("new", "jacobi2d")
    assert code == 0
    assert "warning: `jacobi2d` is a shipped scenario, too: `whatif run jacobi2d.toml` runs the new file\n" in err


def test_a_second_time_nothing_is_written(whatif_main, tmp_path):
    assert whatif_main("new", "mine", "--platform", "turin")[0] == 0
    before = (tmp_path / "mine.toml").read_text()
    code, _, err = whatif_main("new", "mine", "--platform", "summit")
    assert (code, err) == (2, "whatif: mine.toml: exists already, and is not overwritten; choose another name\n")
    assert (tmp_path / "mine.toml").read_text() == before


def test_a_wrong_part_names_the_one_that_was_meant(whatif_main, tmp_path):
    code, _, err = whatif_main("new", "mine", "--gpu", "h100")
    assert code == 2
    assert "did you mean `h100-sxm5-80gb`" in err
    assert not list(tmp_path.iterdir())


def test_a_phase_of_gpus_on_a_machine_of_processors_names_the_option(whatif_main, tmp_path):
    code, out, err = whatif_main("new", "mine", "--processor", "epyc-7742", "--phase", "gemm")
    assert (code, out) == (2, "")
    reason = "mine_machine has no GPU for these products (`[platform.node.gpu]`)"
    assert err == f"whatif: application.phases.gemm: {reason}; add --gpu PART, of `whatif list parts`\n"
    assert not list(tmp_path.iterdir())


def test_wrong_platform_and_phases_are_reported_together(whatif_main, tmp_path):
    code, _, err = whatif_main("new", "mine", "--platform", "lassn", "--phase", "a=x.jsn", "--phase", "stencl")
    assert code == 2
    assert [line.partition("; ")[0] for line in err.splitlines()] == [
        "lassn: no such file or shipped name",
        "`x.jsn`: no such motif, scenario or file",
        "`stencl`: no such motif, scenario or file",
    ]
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_not_utf_8_is_told_and_leaves_no_file(whatif_main, tmp_path):
    code, out, err = whatif_main("new", "n\udcff")
    assert (code, out) == (2, "")
    assert err == "whatif: n\\udcff.toml: not written: a file name in it is not UTF-8; rename that file\n"
    assert not list(tmp_path.iterdir())
