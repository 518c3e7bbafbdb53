"""Model error in samples: its size is that of the accuracy cards, shared by platforms, and bands contain runs."""

from __future__ import annotations

import numpy as np
import pytest
import tomli

import whatif
from tests.accuracy_cards import SCENARIOS, text
from tests.paths import ROOT
from whatif.core.accuracy_cards import CARDS, card_notes, card_of, domain_card, model_cards
from whatif.core.model_error import uncertain_time, with_model_errors
from whatif.core.uncertainty import Sampling, result_samples, shared_keys
from whatif.studies.measured_runs import measured_runs
from whatif.studies.model_errors import ModelErrors
from whatif.studies.run_accuracy import RunGroup, pooled_card


def flat(tables, path=()):
    """Leaves of nested tables by path."""
    for key, value in tables.items():
        yield from flat(value, (*path, key)) if isinstance(value, dict) else [((*path, key), value)]


def assert_alike(found, expected):
    """The same tables, numbers within a thousandth."""
    found, expected = dict(flat(found)), dict(flat(expected))
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        assert found[path] == (pytest.approx(value, rel=2e-3, abs=0) if isinstance(value, float) else value), path


def test_shipped_cards_are_those_of_the_shipped_runs():
    """`python -m tests.accuracy_cards` writes them."""
    assert_alike(tomli.loads(CARDS.read_text(encoding="utf-8")), tomli.loads(text()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_accuracy_of_shipped_scenarios_is_that_of_their_runs(name):
    """`whatif validate NAME.toml -o NAME.toml` writes it."""
    scenario = whatif.load(name)
    own = ModelErrors.of(scenario, measured_runs(scenario)).accuracy_cards
    stated = scenario.program.loaded.scenario.accuracy
    assert_alike({key: card.model_dump() for key, card in stated.items()}, {k: c.model_dump() for k, c in own.items()})


def test_card_of_groups_by_hand():
    groups = [RunGroup("a", "x", np.array([2.0, 2.0])), RunGroup("a", "y", np.array([0.5, 0.5]))]
    card = pooled_card(groups)
    assert card.ratio == pytest.approx(1.0, rel=1e-12, abs=0)
    between, within = 2 * np.log(2) ** 2, 3 * 0.1**2 / 5
    assert np.log(card.scatter) ** 2 == pytest.approx(between + within, rel=1e-12, abs=0)
    assert card.shared_fraction == pytest.approx(1 - between / (between + within), rel=1e-9, abs=0)
    assert card.mean_absolute_error == pytest.approx((0.5 + 1.0) / 2, rel=1e-12, abs=0)
    assert card.bias == pytest.approx((-0.5 + 1.0) / 2, rel=1e-12, abs=0)
    assert (card.run_count, card.applications, card.platforms) == (4, ["a"], ["x", "y"])


def test_factor_of_a_time_is_log_normal_around_the_ratio():
    deviates = np.random.default_rng(3).normal(size=(2, 100_000))
    found = uncertain_time(np.float64(3.0), *deviates, ratio=1.5, scatter=1.2, shared_fraction=0.3)
    np.testing.assert_allclose(np.median(found), 4.5, rtol=0.01, atol=0)
    np.testing.assert_allclose(np.std(np.log(found)), np.log(1.2), rtol=0.01, atol=0)


def test_phases_have_the_errors_of_their_cards_and_sums_follow():
    program = whatif.load("minife").program
    halo = next(phase for phase in program.phases if phase.phase == "halo")
    card = card_of(program, halo)
    samples = result_samples(program, "terms.halo", Sampling(4096))
    plain = float(whatif.run("minife")["terms.halo"])
    np.testing.assert_allclose(np.median(samples), card.ratio * plain, rtol=0.02, atol=0)
    np.testing.assert_allclose(np.std(np.log(samples)), np.log(card.scatter), rtol=0.03, atol=0)
    sampled = with_model_errors(program)
    assert sampled.columns == program.columns
    assert "platform.model_error.communication" in sampled.reached
    exact = result_samples(program, "terms.halo", Sampling(64, model_error=False))
    np.testing.assert_allclose(exact, plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("platform", "model", "known"), [
    ("dgx_h100", "nccl", "nccl_verbs"),
    ("perlmutter", "nccl", "nccl_libfabric"),
    # Its parameters are fitted.
    ("polaris", "nccl", None),
    ("dgx_h100", "postal", None),
])  # fmt: skip
def test_collectives_of_a_library_from_data_sheets_have_a_card(platform, model, known):
    phase = {"kind": "collective", "algorithm": "ring", "model": model, "message_size": "1 MiB"}
    application = {"name": "one", "rank_count": 8, "iteration_count": 1, "phases": {"sum": phase}}
    program = whatif.Scenario.of(application=application, platform=platform).program
    several, one = (model_cards()["communication", name] if known else None for name in (known, "nccl_in_domain"))
    assert card_of(program, program.phases[0]) == several
    assert domain_card(program, program.phases[0]) == one


def test_a_network_without_a_stated_interface_has_the_card_of_all():
    phase = {"kind": "collective", "algorithm": "ring", "model": "nccl", "message_size": "1 MiB"}
    application = {"name": "one", "rank_count": 16, "iteration_count": 1, "phases": {"sum": phase}}
    scenario = whatif.Scenario.of(application=application, platform="dgx_h100")
    program = scenario.changed({"platform.network.inter_node.library_transport": "none"}).program
    assert card_of(program, program.phases[0]) == model_cards()["communication", "nccl"]


def test_a_collective_has_the_error_of_one_link_domain_or_of_several_at_each_point():
    """1 GiB on the GPUs of one and of two DGX H100."""
    phase = {"kind": "collective", "algorithm": "best", "model": "nccl", "message_size": "1 GiB"}
    application = {"name": "one", "rank_count": 8, "iteration_count": 1, "phases": {"sum": phase}}
    scenario = whatif.Scenario.of(application=application, platform="dgx_h100")
    swept = whatif.sweep(scenario, {"application.rank_count": [8, 16]}, samples=4096)
    bands = np.array(swept.bands.values["total_time"])
    for at, model in enumerate(("nccl_in_domain", "nccl_verbs")):
        card = model_cards()["communication", model]
        factors = card.ratio * card.scatter ** np.array([-1.645, 0, 1.645])
        np.testing.assert_allclose(bands[:, at], factors * swept["total_time"][at], rtol=0.02, atol=0)
    alone = whatif.run(scenario, samples=4096).bands.values["total_time"]
    np.testing.assert_allclose(bands[:, 0], alone, rtol=1e-12, atol=0)
    page = (ROOT / "docs" / "collectives.md").read_text(encoding="utf-8")
    words = f"({1e3 * swept['total_time'][0]:.1f} ms; 3.9 to 5.1 ms measured) has a band of"
    assert f"{words} {1e3 * alone[0]:.1f} to {1e3 * alone[2]:.1f} ms" in page


def test_a_scenario_without_runs_states_the_errors_of_its_models(whatif_main):
    notes = whatif_main("run", "jacobi2d_strong", "--point")[2]
    kernels, halo = (model_cards()[key] for key in (("kernel", "roofline"), ("communication", "k_model")))
    words = [
        f"within {100 * card.mean_absolute_error:.2g}% (bias {100 * card.bias:+.2g}%) of {card.run_count} runs"
        for card in (kernels, halo)
    ]
    assert f"models: pack, unpack, stencil, reduce {words[0]}; halo {words[1]}\n" in notes
    assert "models:" not in whatif_main("run", "jacobi2d", "--point")[2]


def test_a_collective_states_the_errors_across_and_in_a_link_domain():
    phase = {"kind": "collective", "algorithm": "best", "model": "nccl", "message_size": "1 GiB"}
    application = {"name": "one", "rank_count": 8, "iteration_count": 1, "phases": {"sum": phase}}
    (note,) = card_notes(whatif.Scenario.of(application=application, platform="dgx_h100").program)
    cards = (model_cards()["communication", name] for name in ("nccl_verbs", "nccl_in_domain"))
    several, one = (100 * card.mean_absolute_error for card in cards)
    assert note.startswith(f"models: sum within {several:.2g}% ")
    assert f", in one link domain within {one:.2g}% " in note


def test_ratio_of_platforms_is_more_certain_than_their_times():
    programs = [whatif.load("jacobi2d", platform=name).program for name in ("perlmutter", "frontier")]
    sampling = Sampling(1024)
    sampling = Sampling(1024, keys=shared_keys(programs, sampling))
    times = [result_samples(program, "terms.halo", sampling) for program in programs]
    alone, ratio = (np.std(np.log(values)) for values in (times[0], times[0] / times[1]))
    assert 0.1 * alone < ratio < 0.8 * alone


@pytest.mark.parametrize("scenario", ["minimd", "jacobi2d"])
def test_kernels_of_platforms_with_the_same_gpu_share_their_error(scenario):
    programs = [whatif.load(scenario, platform=name).program for name in ("summit", "lassen")]
    sampling = Sampling(1024)
    sampling = Sampling(1024, keys=shared_keys(programs, sampling))
    times = [result_samples(program, "kernel_time", sampling) for program in programs]
    alone, ratio = (np.std(np.log(values)) for values in (times[0], times[0] / times[1]))
    assert alone > 0.05
    assert ratio < 0.1 * alone


def test_another_platform_adds_the_variance_that_platforms_do_not_share():
    here, there = (whatif.load("minimd", platform=name).program for name in ("lassen", "frontier"))
    cards = [card_of(program, next(p for p in program.phases if p.phase == "exchange")) for program in (here, there)]
    model = model_cards()["communication", "k_model"]
    added = (1 - model.shared_fraction) * np.log(model.scatter) ** 2
    variances = [np.log(card.scatter) ** 2 for card in cards]
    np.testing.assert_allclose(variances[1], variances[0] + added, rtol=1e-9, atol=0)
    assert any("none on this platform" in note for note in whatif.compare(["minimd"], ["frontier"]).notes)


def test_scenario_without_runs_says_so(whatif_main):
    assert "never compared with a run" in whatif_main("run", "sedov_k80", "--point")[2]
    assert "iteration within " in whatif_main("run", "minife", "--point")[2]


def test_phases_that_are_fits_state_their_runs_and_residuals(whatif_main):
    error = whatif_main("run", "training_power_limit", "--point")[2]
    assert "epoch fitted to 56 runs, RMS residual 1.3%" in error
    assert "never compared" not in error
    assert "never compared with a run" in whatif_main("run", "triton", "--point")[2]


def held_out_hits(name, folder):
    """Whether the bands of a calibration on smaller scales contain each result measured at larger ones."""
    scenario = whatif.load(name)
    runs = measured_runs(scenario)
    text = (scenario.document.folder / f"{name}_runs.csv").read_text()
    lines = [line for line in text.splitlines() if line[0] != "#"]
    ranks = runs.axis.parameters["application.rank_count"]
    for scale in sorted(set(ranks))[3:]:
        path = folder / "runs.csv"
        smaller = (line for line in lines[1:] if float(line.split(",")[1]) < scale)
        path.write_text("\n".join([lines[0], *smaller]) + "\n")
        found = whatif.calibrate(name, runs=path)
        found.write(folder / "out.toml")
        for run in np.flatnonzero(ranks == scale):
            platform = runs.axis.parameters["platform"][run]
            overrides = {"application.rank_count": int(scale)}
            bands = whatif.run(folder / "out.toml", platform=platform, overrides=overrides, samples=512).bands.values
            for result in runs.results:
                if np.isfinite(result.values[run]):
                    lower, _, upper = bands["communication_time" if len(result.parts) > 1 else result.parts[0]]
                    yield float(lower) <= result.values[run] <= float(upper)


def test_bands_contain_80_per_cent_of_runs_that_were_not_used(tmp_path):
    hits = [hit for name in SCENARIOS for hit in held_out_hits(name, tmp_path)]
    assert len(hits) >= 40
    assert np.mean(hits) >= 0.8


def test_measured_reference_removes_the_error_of_the_model_from_speedups():
    found = whatif.compare(["jacobi2d"], ["summit", "frontier"], measured={"jacobi2d": "2.4 s"}, samples=256)
    plain = whatif.compare(["jacobi2d"], ["summit", "frontier"], samples=256)
    for one, other in zip(found.standings, plain.standings, strict=True):
        assert one.merit == pytest.approx(other.merit, rel=1e-12, abs=0)
    summit = next(item for item in found.standings if item.platform == "summit")
    assert summit.times["jacobi2d"] == pytest.approx(2.4, rel=1e-12, abs=0)
    assert summit.chances.merits == pytest.approx((1, 1, 1), rel=1e-12, abs=0)
    biased = whatif.compare(["jacobi2d"], ["summit", "frontier"], references={"jacobi2d": "2.4 s"})
    assert any("all speedups contain this factor" in note for note in biased.notes)
    assert not any("all speedups contain" in note for note in found.notes)
    with pytest.raises(whatif.WhatifError, match="state one of both"):
        whatif.compare(["jacobi2d"], ["summit"], measured={"jacobi2d": 1.0}, references={"jacobi2d": 2.0})
    with pytest.raises(whatif.WhatifError, match="--measured: `0 s` must be greater than 0"):
        whatif.compare(["jacobi2d"], ["summit"], measured={"jacobi2d": "0 s"})


@pytest.mark.parametrize("number", [0.0, -1.0, np.nan, np.inf])
def test_measured_and_reference_times_are_greater_than_0(number):
    for option in ("measured", "references"):
        with pytest.raises(whatif.WhatifError, match="must be greater than 0"):
            whatif.compare(["jacobi2d"], ["summit"], **{option: {"jacobi2d": number}})


def test_notes_of_a_result_are_those_of_the_command_line(tmp_path, whatif_main):
    whatif.calibrate("minimd").write(tmp_path / "out.toml")
    point = whatif.run(tmp_path / "out.toml", platform="summit", samples=64)
    err = whatif_main("run", "out.toml", "--platform", "summit", "--samples", "64", "--point")[2]
    assert point.notes[0].startswith("calibrated: ")
    assert any("held-out runs on lassen" in note for note in point.notes)
    assert all(note in err for note in point.notes)


def test_note_where_a_value_lies_outside_of_its_band():
    """Communication of postal halos takes 2.8 times as long as predicted."""
    overrides = {"application.phases.halo.model": "postal"}
    found = whatif.run("jacobi2d", platform="perlmutter", overrides=overrides, samples=256)
    low = found.bands.values["communication_time"][0]
    names = found.outside
    assert ("communication_time" in names) == bool(found["communication_time"] < low)
    assert "communication_time" in names
    assert any(note.startswith(f"{', '.join(names)}: outside of the bands") for note in found.notes)
    certain = whatif.run("jacobi2d", platform="perlmutter", overrides=overrides)
    assert certain.outside == ()
    exact = whatif.run("sedov_k80", samples=64)
    assert exact.outside == ()


def test_report_states_the_accuracy(tmp_path):
    whatif.report("minife", tmp_path / "r.html")
    assert "iteration within 5.8% (bias -3.9%) of 5 runs on lassen" in (tmp_path / "r.html").read_text(encoding="utf-8")
