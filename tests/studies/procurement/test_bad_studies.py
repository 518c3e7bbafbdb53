"""Studies with mistakes: each is reported with its place in the file."""

from __future__ import annotations

import pytest

import whatif
from tests.one_phase import one_phase
from tests.studies.procurement.studies_at_hand import BIDS, STUDY, study_file
from whatif.errors import InvalidFileError, UsageError
from whatif.importers.run_columns import usual_heading

ONE = '[bids.six]\nplatform = "summit"\nnode_count = 60\nnode_price = "50 kUSD"'


def problem_of(path, **options):
    with pytest.raises(InvalidFileError) as caught:
        whatif.study(path, **options)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("bids", "limits", "more", "key", "message"),
    [
        ('[bids.six]\nplatform = "summit"\nnode_price = "50 kEUR"', 'capital = "1 MUSD"', "", "bids.six.node_price",
         "is in EUR, the study in USD; state `[rates.EUR]`"),
        (ONE, "", '[rates.EUR]\nvalue = "1 GBP"\ndate = "2026-11-24"', "", ""),
        ('[bids.six]\nplatform = "summit"\nnode_price = "1 EUR"', 'capital = "1 MUSD"',
         '[rates.EUR]\nvalue = "1 GBP"\ndate = "2026-11-24"',
         "rates.EUR.value", "must be in USD"),
        (ONE, "", '[rates.EUR]\nvalue = "1 USD"\ndate = "yesterday"', "rates.EUR.date", "`yesterday` is not a date"),
        ('[bids.six]\nplatform = "summit"\nnode_price = "1 USD"\nprice = "2 USD"', "", "", "bids.six.node_price",
         "`price` and `node_price` exclude each other"),
        ('[bids.six]\nplatform = "turin"\nprice = "2 USD"', "", "", "bids.six.price",
         "for how many nodes? State `node_count`: the 256 nodes of EPYC 9755 are assumed"),
        ('[bids.six]\nplatform = "three.toml"\nprice = "2 USD"', "", "", "bids.six.price",
         "nodes of Three are inherited from another machine"),
        (ONE, "", '[mix.c]\nscenario = "a.toml"\ntarget = "itertion_time <= 1 s"', "mix.c.target",
         "did you mean `iteration_time`"),
        (ONE, "", '[mix.c]\nscenario = "a.toml"\ntarget = "1 s"', "mix.c.target", "expected RESULT <= TIME"),
        ('[bids.six]\nplatform = "summit"\nnode_price = "= 2 * x"', "", "", "bids.six.node_price", "not an expression"),
        ('[bids.six]\nplatform = "summit"\nnode_prices = { few = "1 USD" }', "", "", "bids.six.node_prices",
         "`few` is not a number of nodes"),
        ('[bids.six]\nplatform = "sumit"\nnode_price = "1 USD"', "", "", "bids.six.platform", "did you mean `summit`"),
        ('[bids.six]\nplatform = "summit"\nnode_count = 60\nfixed_price = "1 USD"', "", "", "bids.six.fixed_price",
         "no effect without a price of the nodes: state price, node_price, node_prices or node_rate"),
        ('[bids.six]\nplatform = "summit"', 'capital = "1 MUSD"', "", "bids.six", "no price, which `[limits] capital`"),
        ('[bids.six]\nplatform = "summit"\nnode_price = "1 USD"\n[bids.six.overrides]\nnode.host.power = "none"',
         'power = "1 MW"', "", "bids.six.platform", "state node.host.power in its platform or in `[bids.six"),
        (ONE, 'cost = "1 MUSD"', "", "limits.cost", "`[limits] cost` needs `[limits] lifetime`"),
        (ONE, 'lifetime = "5"', "", "limits.lifetime", "write a quantity in s, such as `5 years`"),
        (ONE, 'power = "1 MUSD"', "", "limits.power", "write a quantity in W"),
        (ONE, 'pwr = "1 MW"', "", "limits.pwr", "did you mean `power`?"),
        ('[bids.present]\nplatform = "summit"', "", "", "bids.present", "give the bid another name"),
        (ONE, "", '[mix.mix]\nscenario = "a.toml"', "mix.mix", "give this one another name"),
        (ONE, "", '[mix.c]\nscenario = "no_such"', "mix.c.scenario", "`no_such`: no such file or shipped name"),
        (ONE, "", '[mix.c]\nscenario = "three.toml"', "mix.c.scenario", "`three.toml` is a platform, not a scenario"),
        (ONE, "", '[mix.c]\nscenario = "a.toml"\n[mix.c.on.seven]\nx = 1', "mix.c.on.seven", "not a machine of"),
        (ONE, "", '[mix.c]\nscenario = "minife"\nruns = "none.csv"', "", "no such file"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_key_and_line(tmp_path, bids, limits, more, key, message):
    path = study_file(tmp_path, bids=bids, limits=limits, more=more)
    if not message and not key:
        assert whatif.study(path).outcomes  # A rate that no price needs is not looked at.
        return
    problem = problem_of(path)
    assert message in problem.message
    if key:
        assert problem.key == key
        assert key.rpartition(".")[2] in path.read_text().splitlines()[problem.line - 1]


@pytest.mark.parametrize(("price", "key"), [("", "bids.six.platform"), ('price = "2 USD"', "bids.six.price")])
def test_a_price_of_a_machine_whose_nodes_are_an_expression_is_refused(tmp_path, price, key):
    text = 'extends = "summit"\nnode_count = "= 2 * 100"\n[price]\nmachine_price = "6 MUSD"\n'
    (tmp_path / "counted.toml").write_text(text)
    path = study_file(tmp_path, bids=f'[bids.six]\nplatform = "counted.toml"\n{price}', limits='capital = "1 MUSD"')
    problem = problem_of(path)
    assert problem.key == key
    assert "counted.toml is an expression; state a `node_price` here" in problem.message


def test_a_study_that_extends_another_is_told_that_it_cannot(tmp_path):
    path = study_file(tmp_path, bids=ONE)
    path.write_text(f'extends = "successor"\n{path.read_text()}')
    assert problem_of(path).message == "`extends`: unknown key; a study extends no other: copy the file and change it"


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"limits.cost": "10 MUSD"}, "limits.cost", "`[limits] cost` needs `[site] energy_price`"),
        ({"criterion": "cost"}, "criterion", '`criterion = "cost"` needs `[site] energy_price`'),
        ({"criterion": "cost", "site.energy_price": "0.1 USD/kWh", "limits.lifetime": "none"}, "criterion",
         '`criterion = "cost"` needs `[limits] lifetime`'),
        ({"criterion": "energy", "bids.six.overrides.node.host.power": "none"}, "bids.six.platform",
         'no power, which `criterion = "energy"` needs'),
    ],
)  # fmt: skip
def test_what_a_limit_of_cost_or_the_criterion_lacks_is_named(tmp_path, changes, key, message):
    path = study_file(tmp_path, bids=ONE, limits='lifetime = "5 years"\ncapital = "9 MUSD"')
    path.write_text(path.read_text().replace('energy_price = "0.36 USD/kWh"\n', ""))
    problem = problem_of(path, overrides=changes)
    assert problem.key == key
    assert message in problem.message


def test_weights_that_add_up_to_nothing(tmp_path):
    path = study_file(tmp_path)
    with pytest.raises(InvalidFileError, match="the weights add up to 0"):
        whatif.study(path, overrides={"mix.a.weight": 0, "mix.b.weight": 0})


def test_runs_of_another_machine_than_the_present_one(tmp_path):
    text = STUDY.format(bids=BIDS, limits="", more='[mix.c]\nscenario = "minife"\nruns = "runs.csv"')
    path = study_file(tmp_path)
    path.write_text(text)
    (tmp_path / "runs.csv").write_text("platform,rank_count,iteration_time [us]\nsummit,64,5000\n")
    problem = problem_of(path)
    assert problem.key == "mix.c.runs"
    assert "no runs on lassen" in problem.message
    assert "runs must be of the present machine, lassen" in problem.message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"mix.e.runs": "none.csv"}, "mix.e.runs: {}/none.csv: no such file"),
        (
            {"mix.e.overrides.application.memory_size": "900 GB"},
            "mix.e.runs: {}/runs.csv:2:1: infeasible: application.memory_",
        ),
    ],
)
def test_runs_that_cannot_be_used_are_refused_at_their_key(tmp_path, overrides, message):
    (tmp_path / "runs.csv").write_text("rank_count,iteration_time [ms]\n64,21\n128,12.5\n")
    path = study_file(tmp_path, more='[mix.e]\nscenario = "minife"\nruns = "runs.csv"')
    with pytest.raises(InvalidFileError) as caught:
        whatif.study(path, overrides=overrides)
    assert message.format(tmp_path) in str(caught.value)


def test_an_application_that_fits_nowhere(tmp_path):
    path = study_file(tmp_path)
    whole = {"mix.a.overrides.application.rank_count": 400}
    found = whatif.study(path, overrides={**whole, "limits.capital": "1 MUSD"})
    assert not found.winner
    assert found.obstacle() == "infeasible: no bid runs the mix within the limits"
    assert found.bids["six"].reasons == ("a: needs 67 nodes, the limit of capital allows 20", "")
    assert found.chances == {}
    rows = [row for row in whatif.study(path, overrides=whole, show="jobs").to_dict()["rows"]
            if row["machine"] == "three"]  # fmt: skip
    assert rows[0]["reason"] == "400 ranks need 134 nodes, the machine has 90"
    assert rows[1]["throughput"] > 0


def test_an_application_that_the_present_machine_cannot_run(tmp_path):
    path = study_file(tmp_path)
    ranks = {f"mix.{name}.overrides.application.rank_count": 600 for name in "ab"}
    with pytest.raises(InvalidFileError) as caught:
        whatif.study(path, overrides=ranks)
    reason = "the present machine cannot run it: 600 ranks need 150 nodes, the machine has 100"
    assert [(item.key, item.message) for item in caught.value.problems] == [
        (
            f"mix.{name}",
            f"{reason}; lower `mix.{name}.overrides.application.rank_count`, or leave it out with `weight = 0`",
        )
        for name in "ab"
    ]
    changed = {"mix.a.overrides.application.rank_count": 400, "mix.b.weight": 0}
    assert whatif.study(path, overrides={**ranks, **changed}).winner


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"limits.pwer": "x0.9"}, "did you mean `limits.power`"),
        ({"bids.ten.overrides.node.gpu_count": "x2"}, "no such bid or application"),
        ({"bids.six.overrides.node.gpus": "x2"}, "no such parameter"),
    ],
)
def test_relative_values_of_unknown_parameters(tmp_path, overrides, message):
    path = study_file(tmp_path, limits='power = "1 MW"')
    with pytest.raises(UsageError, match=message):
        whatif.study(path, overrides=overrides)


def test_a_file_that_exists_is_not_overwritten(tmp_path):
    path = study_file(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        whatif.new_study(path)


def test_a_target_of_an_unknown_result(tmp_path):
    path = study_file(tmp_path, more='[mix.c]\nscenario = "minife"\ntarget = "speed <= 1 s"')
    with pytest.raises(InvalidFileError, match=r"study.toml:\d+:1: mix.c.target: .*speed"):
        whatif.study(path, show="commitments").table()


def test_a_study_is_no_scenario_and_a_scenario_no_study(tmp_path):
    path = study_file(tmp_path)
    with pytest.raises(InvalidFileError, match="is a study, not a scenario: `whatif study"):
        whatif.run(path)
    problem = problem_of(tmp_path / "a.toml")
    assert problem.message.startswith("is a scenario, not a study: `whatif run")


def test_none_removes_a_value_of_a_study_and_of_a_machine(tmp_path):
    bids = '[bids.six]\nplatform = "summit"\nnode_prices = { 1 = "50 kUSD" }'
    path = study_file(tmp_path, bids=bids)
    changed = {"bids.six.node_prices": "none", "bids.six.node_price": "25 kUSD"}
    assert whatif.study(path, overrides=changed).bids["six"].node_count[0] == 200
    found = whatif.study(path, overrides={"bids.six.overrides.node.host.power": "none"})
    assert found.jobs.of("six")["a"].unknown == ("platform.node.host.power",)


def test_check_reads_the_files_that_a_study_names(tmp_path):
    path = study_file(tmp_path)
    assert [file.kind for file in whatif.check(path, "successor").files] == ["study", "study"]
    path = study_file(tmp_path, bids='[bids.six]\nplatform = "sumit"\nnode_price = "1 USD"')
    (problem,) = whatif.check(path).problems
    assert problem.key == "bids.six.platform"


def test_check_evaluates_the_options(tmp_path):
    path = study_file(tmp_path, more='[options.more]\nbids.six.node_count = "x1.1"')
    (problem,) = whatif.check(path).problems
    assert problem.key == "options.more"
    assert "`bids.six.node_count`: not stated in the study" in problem.message


@pytest.mark.parametrize(
    "headings",
    ["ranks,halo [us]", "np,halo [us]", "MPI Tasks,halo [us]", "rank_count,time [us]", "rank_count,Wallclock time [us]",
     "rank_count,Time / step [us]"],
)  # fmt: skip
def test_usual_headings_of_runs_are_read(tmp_path, headings):
    path = study_file(tmp_path, more='[mix.c]\nscenario = "minife"\nruns = "runs.csv"')
    (tmp_path / "runs.csv").write_text(f"{headings}\n64,5000\n")
    assert whatif.study(path).table().columns["throughput"].values[0] > 0
    (tmp_path / "runs.csv").write_text("wheels,halo [us]\n64,5000\n")
    assert "wheels" in problem_of(path).message


def test_a_step_size_is_not_the_time_of_a_step():
    assert (usual_heading("time / step"), usual_heading("time step")) == ("iteration_time", "")


@pytest.mark.parametrize("verb", [("check",), ("study",)])
def test_a_missing_table_is_missing_in_the_file(whatif_main, tmp_path, verb):
    (tmp_path / "study.toml").write_text('[presents]\nplatform = "lassen"\n[bids.six]\nplatform = "summit"\n')
    code, _, err = whatif_main(*verb, "study.toml")
    assert code == 3
    assert "study.toml:1:1: present: missing key" in err
    assert "--set" not in err


WITHOUT_MONEY = '[present]\nplatform = "lassen"\nnode_count = 64\n[mix.a]\nscenario = "minife"\n'


@pytest.mark.parametrize(
    ("platforms", "money"), [(("frontier",), "USD"), (("jupiter",), "EUR"), (("frontier", "jupiter"), "")]
)
def test_a_study_without_money_has_the_prices_of_its_platforms_in_one_currency(tmp_path, platforms, money):
    path = tmp_path / "study.toml"
    bids = (f'[bids.{name}]\nplatform = "{name}"\nnode_count = 100\n' for name in platforms)
    path.write_text(WITHOUT_MONEY + "".join(bids))
    prices = whatif.study(path).prices
    assert prices.currency == money
    assert all(prices.machines[name].is_known == bool(money) for name in platforms)


def test_a_fixed_price_alone_gives_the_currency_of_the_study(tmp_path):
    path = study_file(tmp_path)
    path.write_text(
        '[present]\nplatform = "lassen"\nnode_count = 100\n[mix.a]\nscenario = "a.toml"\n'
        '[bids.six]\nplatform = "summit"\nnode_count = 60\nfixed_price = "1 EUR"\n'
    )
    problem = problem_of(path)
    assert (problem.key, problem.line) == ("bids.six.fixed_price", 9)
    assert "no effect without a price of the nodes" in problem.message


def test_an_application_that_takes_no_time_is_refused(tmp_path):
    path = study_file(tmp_path)
    (tmp_path / "b.toml").write_text(one_phase("0 s", ranks=12))
    problem = problem_of(path)
    assert (problem.key, problem.message) == (
        "mix.b",
        "the present machine cannot run it: a job takes no time; leave it out with `weight = 0`",
    )
