"""Runs that discover values: one budget pays for the values and the release, and everything else goes on as usual."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.command import Run

from pointillist import (
    Account,
    Categorical,
    Discovered,
    Grid,
    InputError,
    Marginal,
    Product,
    Relation,
    Release,
    Schema,
    Synthesizer,
    Table,
    Workload,
    evaluate,
    prepare,
    resume,
    synthesize,
)
from pointillist.algorithms import METHODS, Public
from pointillist.attestation import verify
from pointillist.data import scanning
from pointillist.data.columns import Merged
from pointillist.data.sources import LaterSource, TableSource
from pointillist.errors import RunStopped
from pointillist.privacy.budget import rho_of
from pointillist.privacy.curator import Curator
from pointillist.privacy.gaussian import LEAST_SCALES, gaussian_rho_of
from pointillist.privacy.ledger import Entry, rounded_up
from pointillist.privacy.thresholds import log_shown
from pointillist.release.journal import Journal
from pointillist.reports import registry_record
from pointillist.runs import journal_of

TOWNS = ("Aba", "Bebe", "Cece", "Dodo")
SCHEMA = Schema((Discovered("town"), Categorical("sex", ("f", "m")), Grid("age", bounds=(0, 100), integer=True)))
PLAIN = Schema((Discovered("town"), Categorical("sex", ("f", "m"))), ignore=("age", "who"))
MWEM: dict[str, Any] = {"epsilon": 2.0, "method": "mwem", "settings": {"rounds": 2}, "workload": "marginals:1,2"}
AUTO: dict[str, Any] = MWEM | {"method": "auto", "settings": {"rows": 20, "t_max": 10}}
RELATIONS = [{}, {"relation": "add-remove", "delta": 1e-6}]


def people(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Four frequent towns, some missing ones, and a few values that one row has."""
    rng = np.random.default_rng(seed)
    town = rng.choice(TOWNS, n, p=[0.4, 0.3, 0.2, 0.1]).astype(object)
    town[: n // 20] = None
    town[-5:] = [f"only {i}" for i in range(5)]
    sex = np.where((town == "Aba") ^ (rng.random(n) < 0.1), "f", "m")
    return pd.DataFrame({"town": town, "sex": sex, "age": rng.integers(0, 101, n)})


# --- end to end


@pytest.mark.parametrize("more", RELATIONS, ids=str)
@pytest.mark.parametrize("method", [MWEM, AUTO], ids=["mwem", "auto"])
def test_a_release_with_discovered_values(method: dict[str, Any], more: dict[str, Any], tmp_path: Path) -> None:
    told: list[str] = []
    release = synthesize(people(), schema=SCHEMA, out=tmp_path / "r", announce=told.append, **method, **more)
    loaded = Release.load(tmp_path / "r")
    assert loaded.schema == release.schema
    assert loaded.given == SCHEMA
    assert loaded.description == release.description
    assert release.schema.columns[0].labels == (*TOWNS, "other")
    made = release.to_arrow().to_pandas()["town"]
    assert set(made.dropna()) <= {*TOWNS, "other"}
    found = release.description.discovered
    assert found is not None
    assert found[0].values == TOWNS
    assert min(found[0].counts) >= found[0].threshold
    assert any(line.startswith("5% of the budget and ") for line in told)
    assert any("values discovered: town 4" in line for line in told)
    if method is AUTO:
        assert abs((made == "Aba").mean() - 0.38) < 0.05
        assert (made == "other").mean() < 0.02
        assert abs(made.isna().mean() - 0.05) < 0.02
    report = verify(tmp_path / "r", replay=True)
    assert [one for one in report.checks if one.status == "failed"] == []
    assert report["replayed model"].status == report["replayed rows"].status == "ok"
    assert report["discovered values"].reason == "4 values of 1 columns, none below its threshold"
    figures = evaluate(people(), loaded)
    assert evaluate(people(), loaded, schema=SCHEMA).to_dict() == figures.to_dict()


@pytest.mark.parametrize("more", [*RELATIONS, {"unit": "who", "max_rows": 3, "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("method", [MWEM, AUTO], ids=["mwem", "auto"])
def test_the_ledger_is_within_the_budget_computed_again(method: dict[str, Any], more: dict[str, Any]) -> None:
    frame = people().assign(who=np.arange(3000) // 4)
    schema = Schema((*SCHEMA.columns, Discovered("again")), ignore=("who",))
    release = synthesize(frame.assign(again=frame["town"]), schema=schema, **method, **more)
    privacy = release.description.privacy
    delta, shown = privacy.delta, privacy.delta_shown
    assert delta == more.get("delta", 1 / 3000**2)
    assert shown == delta * 0.2
    rest = math.nextafter(float(Fraction(delta) - Fraction(shown)), 1.0)
    limits = [rho_of(2.0, rest), *(gaussian_rho_of(2.0, rest, scale) for scale in LEAST_SCALES)]
    assert privacy.rho <= max(limits) * (1 + 1e-9)
    assert min(abs(privacy.rho / one - 1) for one in limits) < 1e-9
    assert sum(Fraction(entry.rho) for entry in privacy.ledger) <= Fraction(privacy.rho)
    assert sum(Fraction(entry.delta) for entry in privacy.ledger) <= Fraction(shown)
    labels = [entry.label for entry in privacy.ledger]
    before = ["discovery"] * 2 if privacy.relation == "replace" else ["number of rows", "discovery", "discovery"]
    assert labels[: len(before)] == before
    m = more.get("max_rows", 1)
    square = 2 if privacy.relation == "replace" else m**2
    left = privacy.rho - sum(entry.rho for entry in privacy.ledger if entry.label == "number of rows")
    for entry, found in zip(privacy.ledger[len(before) - 2 :], release.description.discovered or (), strict=False):
        assert entry.rho >= square / (2 * entry.scale**2)
        assert entry.rho <= 0.05 * left * (1 + 1e-12)
        assert log_shown(found.threshold, entry.scale, m) <= math.log(entry.delta)
        assert found.sigma == entry.scale
    assert f"Part of delta for showing a value that only one unit has: {rounded_up(shown)}" in release.statement


def test_the_rest_goes_on_as_with_a_declared_list() -> None:
    """With the same noise and the same budget of the rounds the model is that of the declared list."""
    release = synthesize(people(), schema=PLAIN, insecure_noise_seed=1, **MWEM)
    listed = prepare(people(), schema=Schema(release.schema.columns, ignore=("age",)), insecure_noise_seed=1, **MWEM)
    assert listed.task.workload.to_dict() == release.description.workload
    assert listed.algorithm.family.to_dict() == release.description.family
    assert release.description.rho == pytest.approx(0.95 * release.description.privacy.rho)


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("more", RELATIONS, ids=str)
def test_every_method_pays_the_same_share_and_goes_on(method: str, more: dict[str, Any]) -> None:
    public = people(300, seed=9) if METHODS[method].public is Public.NEEDED else None
    options: dict[str, Any] = {"epsilon": 2.0, "method": method, "workload": "marginals:2,3", "public": public}
    if "rounds" in {one.name for one in fields(METHODS[method].settings)}:
        options["settings"] = {"rounds": 2}
    job = prepare(people(), schema=SCHEMA, **options, **more)
    after = job.discovered(job.curator)
    *counted, entry = job.curator.ledger.entries
    assert (entry.label, len(counted)) == ("discovery", 1 if more else 0)
    left = job.curator.ledger.limit - sum(one.rho for one in counted)
    assert entry.rho == pytest.approx(0.05 * left)  # whatever least scale the account has
    assert after.schema.columns[0].labels == (*TOWNS, "other")
    after.check_plan()


def test_many_values_are_merged_and_both_stages_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.012, 60_000), 199)
    frame = pd.DataFrame({"code": [f"{i:03d}" for i in codes], "sex": np.where(codes < 40, "f", "m")})
    schema = Schema((Discovered("code", prefixes=(1,)), Categorical("sex", ("f", "m"))))
    release = synthesize(frame, schema=schema, out=tmp_path / "r", **AUTO | {"epsilon": 50.0})
    column = release.schema.columns[0]
    assert isinstance(column, Merged)
    assert len(column.base.labels) > 128
    assert release.refined is not None
    loaded = Release.load(tmp_path / "r")
    assert loaded.refined is not None
    assert loaded.refined.schema == release.refined.schema
    assert loaded.refined.schema.columns[0] == column.base
    assert loaded.refined.log.facts == release.refined.log.facts
    report = verify(tmp_path / "r", replay=True)
    assert [one for one in report.checks if one.status == "failed"] == []
    assert evaluate(frame, loaded, schema=schema).rows is not None


def test_a_column_without_frequent_values_is_other_or_missing(tmp_path: Path) -> None:
    frame = people().assign(town=[f"person {i}" if i % 2 else None for i in range(3000)])
    release = synthesize(frame, schema=PLAIN, out=tmp_path / "r", **AUTO)
    assert release.schema.columns[0].labels == ("other",)
    made = release.to_arrow().to_pandas()["town"]
    assert set(made.dropna()) == {"other"}
    assert abs(made.isna().mean() - 0.5) < 0.05
    assert verify(tmp_path / "r", replay=True).ok


def test_a_value_of_one_person_is_practically_never_listed() -> None:
    """Ten thousand persons with a value of their own, in twenty runs."""
    frame = pd.DataFrame({"town": [f"person {i}" for i in range(500)] + ["Aba"] * 2500, "sex": ["f", "m"] * 1500})
    for _ in range(20):
        job = prepare(frame, schema=PLAIN, **MWEM | {"epsilon": 10.0})
        assert job.discovered(job.curator).schema.columns[0].labels == ("Aba", "other")


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_release_depends_on_the_data_through_the_noise_alone(relation: str, blind_noise: None) -> None:
    options = MWEM | {"insecure_noise_seed": 1, "relation": relation, "delta": 1e-6}
    first = synthesize(people(seed=1), schema=SCHEMA, **options)
    second = synthesize(people(3000 if relation == "replace" else 700, seed=2), schema=SCHEMA, **options)
    assert first.schema == second.schema
    assert all(map(np.array_equal, first.table.codes, second.table.codes))


@pytest.mark.parametrize("kind", ["csv", "parquet", "stream", "again", "unit", "polars", "duckdb"])
def test_other_kinds_of_tables_give_the_same_release(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = MWEM | {"insecure_noise_seed": 3}
    frame = people()
    reference = synthesize(frame, schema=PLAIN, **options)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    data: Any = tmp_path / f"people.{kind}"
    if kind == "csv":
        frame.to_csv(data, index=False)
    elif kind == "stream":
        data = pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=100))
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        data = duckdb.connect().from_arrow(arrow)
    elif kind == "polars":
        data = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "unit":
        options |= {"unit": "who", "max_rows": 1, "delta": 1 / 3000**2}
        reference = synthesize(frame, schema=PLAIN, **options | {"unit": None, "max_rows": None} | RELATIONS[1])
        data, options["delta"] = frame.assign(who=np.arange(3000)), 1e-6
    else:
        data = tmp_path / "people.parquet"
        frame.to_parquet(data)
        if kind == "again":  # no room to keep the codes: files are read for every pass
            monkeypatch.setattr(scanning, "SHARE_OF_ROWS", 0.0)
    release = synthesize(data, schema=PLAIN, **options)
    assert release.description.discovered == reference.description.discovered
    assert all(map(np.array_equal, release.table.codes, reference.table.codes))


@pytest.mark.parametrize(
    "method",
    [{"method": "auto", "settings": {"rows": 20, "t_max": 10}}, {"method": "pmw_pub", "settings": {"rounds": 2}}],
    ids=str,
)
def test_a_public_table_is_encoded_again(method: dict[str, Any], tmp_path: Path) -> None:
    public = people(500, seed=7)
    release = synthesize(people(), schema=SCHEMA, public=public, out=tmp_path / "r", **MWEM | method)
    assert release.schema.columns[0].labels == (*TOWNS, "other")
    report = verify(tmp_path / "r", replay=True, public=public)
    assert [one for one in report.checks if one.status == "failed"] == []


def test_the_familiar_form(tmp_path: Path) -> None:
    made = Synthesizer(**MWEM, schema=PLAIN).fit(people(), out=tmp_path / "r")
    assert set(made.sample(50, given={"town": "Aba"})["town"]) == {"Aba"}
    again = Synthesizer.load(tmp_path / "r")
    assert again.schema == PLAIN
    again.fit(people())
    assert again.release_.schema.columns[0].labels == (*TOWNS, "other")


# --- interrupted runs


def test_a_run_resumes_from_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = MWEM | {"insecure_noise_seed": 5, "relation": "add-remove", "delta": 1e-6}
    reference = synthesize(people(), schema=SCHEMA, out=tmp_path / "whole", **chosen)
    append, resumed = Journal.append, 0
    for number in range(1, 40):
        out, count = tmp_path / f"r{number}", iter(range(1000))

        def dying(journal: Journal, *args: Any, stop: int = number, count: Any = count, **more: Any) -> None:
            if next(count) == stop:
                raise KeyboardInterrupt
            append(journal, *args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", dying)
            try:
                synthesize(people(), schema=SCHEMA, out=out, **chosen)
                break
            except (RunStopped, KeyboardInterrupt):
                pass  # the run that is resumed below
        if not out.exists():
            continue
        release = resume(out, people())
        resumed += 1
        assert all(map(np.array_equal, release.table.codes, reference.table.codes))
        assert release.description.privacy.ledger == reference.description.privacy.ledger
        assert release.description.discovered == reference.description.discovered
    assert resumed >= 8


@pytest.mark.parametrize("more", RELATIONS, ids=str)
def test_a_kill_between_the_discovery_and_the_rest_spends_nothing_twice(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: Any) -> None:
        raise OSError("the machine is off")

    with monkeypatch.context() as patch:
        patch.setattr(Curator, "measure", failing)
        with pytest.raises(RunStopped) as stop:
            synthesize(people(), schema=SCHEMA, out=tmp_path / "r", **MWEM, **more)
    assert [one.values for one in stop.value.discovered] == [TOWNS]
    records = journal_of(tmp_path / "r")
    shown = next(one.data["found"] for one in records if one.data.get("operation") == "discover")
    spent = [Entry(**entry) for one in records if one.kind == "charge" for entry in one.data["entries"]]
    assert [entry.label for entry in spent if entry.delta] == ["discovery"]
    ledger = json.loads((tmp_path / "r" / "ledger.json").read_text())
    assert ledger["delta_spent"] == spent[-1].delta <= ledger["delta_shown"]
    with monkeypatch.context() as patch:
        patch.setattr(Curator, "discover", failing)
        release = resume(tmp_path / "r", people())
    assert list(release.description.privacy.ledger[: len(spent)]) == spent
    assert release.description.discovered is not None
    assert list(release.description.discovered[0].counts) == shown[0]["counts"]
    assert sum(entry.delta > 0 for entry in release.description.privacy.ledger) == 1
    assert verify(tmp_path / "r", replay=True).ok


def test_an_account_books_the_part_of_delta(tmp_path: Path) -> None:
    account = Account.create(tmp_path / "account.db", epsilon=10.0, delta=1e-5)
    synthesize(people(), schema=PLAIN, out=tmp_path / "r", account=account, **MWEM | {"delta": 1e-6})
    (booked,) = account.history()
    assert booked.delta_shown == 2e-7


# --- refused before anything is spent


@pytest.fixture
def unspent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any charge fails the test."""

    def never(*arguments: Any) -> None:
        raise AssertionError("something was charged")

    monkeypatch.setattr("pointillist.privacy.ledger.Ledger.charge", never)


CONDITION = "format = 1\n\n[[queries]]\nwhere = 'town == \"Aba\"'\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"workload": "queries.toml"}, "column 'town' must list its values here"),
        ({"workload": "halfspaces:5"}, "workload must be of marginals where columns have no fixed bins or values"),
        ({"epsilon": 1e-3}, "epsilon must leave the discovery of values a threshold that 3,000 rows reach"),
        ({"epsilon": 1e-9, "relation": "add-remove", "delta": 1e-30}, "epsilon must leave"),
        ({"method": "mwem", "settings": {"rounds": 1000}}, "rounds must pick at most"),
        ({"delta": 0.0}, "delta must be"),
        ({"target": "towns", "workload": None}, "did you mean 'town'"),
        ({"workload": "marginals:2@towns"}, "did you mean 'town'"),
    ],
    ids=str,
)
def test_bad_input_is_refused_before_anything_is_spent(
    more: dict[str, Any], message: str, unspent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries.toml").write_text(CONDITION)
    with pytest.raises(InputError, match=message):
        synthesize(people(), schema=SCHEMA, out=tmp_path / "r", **MWEM | more)
    assert not (tmp_path / "r").exists()


def test_other_refusals_before_anything_is_spent(unspent: None) -> None:
    with pytest.raises(InputError, match="column 'sex' must only hold values of the schema"):
        synthesize(people().assign(sex="x"), schema=SCHEMA, **MWEM)
    codes = Table(Schema((Categorical("a", (0, 1)),)), (np.zeros(10, int),))
    source = TableSource(codes)
    object.__setattr__(source.table, "schema", PLAIN)
    with pytest.raises(InputError, match="table must be a plain table or files where values are discovered"):
        prepare(source, **MWEM)
    product = Workload.of(SCHEMA.domain, [Product.of(SCHEMA.domain, {"town": "prefixes"})])
    with pytest.raises(InputError, match="no fixed bins or values"):
        synthesize(people(), schema=SCHEMA, **MWEM | {"workload": product})


@pytest.mark.parametrize("workload", ["marginals:2", "marginals:2@town", "marginals:1,2", "marginals:2:2:1", None])
def test_workloads_by_names_of_columns(workload: str | None) -> None:
    job = prepare(people(), schema=SCHEMA, **MWEM | {"workload": workload, "settings": {"rounds": 1}})
    after = job.discovered(job.curator)
    assert after.task.workload.scopes == job.task.workload.scopes
    assert after.task.workload.domain.sizes[:2] == (6, 2)


def test_a_workload_object_over_the_given_columns() -> None:
    workload = Workload.of(PLAIN.domain, [("town", "sex"), "sex"])
    release = synthesize(people(), schema=PLAIN, **MWEM | {"workload": workload})
    assert release.workload.queries == (Marginal((0, 1), (6, 2)), Marginal((1,), (2,)))


# --- plans, and what verify finds


def test_a_plan_needs_no_data(unspent: None) -> None:
    job = prepare(LaterSource(SCHEMA, 50_000), **AUTO)
    listing = job.stage.listing if job.stage is not None else None
    assert listing is not None
    most = listing.most(job.facts_before)
    assert job.task.domain.sizes[0] >= min(128, most) + 2
    plan = job.plan()
    assert plan.stages[0].startswith("5% of the budget and 8e-11 of delta discover the values of town first")
    assert f"first: {plan.stages[0]}" in repr(plan)
    assert plan.rho == pytest.approx(0.95 * 0.98 * job.curator.ledger.limit)
    private = prepare(LaterSource(SCHEMA, None), **AUTO, relation="add-remove", delta=1e-6)
    assert private.task.domain.sizes[0] == 130
    assert private.plan(50_000).stages


def damaged(folder: Path, change: Any) -> None:
    spec = json.loads((folder / "release.json").read_text())
    change(spec)
    (folder / "release.json").write_text(json.dumps(spec))


def lower_threshold(spec: Any) -> None:
    spec["discovered"][0]["threshold"] -= 1


def higher_threshold(spec: Any) -> None:
    spec["discovered"][0]["threshold"] = min(spec["discovered"][0]["counts"])


def another_value(spec: Any) -> None:
    spec["discovered"][0]["values"][0] = "AAA"


def small_count(spec: Any) -> None:
    spec["discovered"][0]["counts"][0] = 1


def less_delta(spec: Any) -> None:
    spec["privacy"]["ledger"][0]["delta"] /= 2


def no_part_of_delta(spec: Any) -> None:
    del spec["privacy"]["delta_shown"]


def nothing_discovered(spec: Any) -> None:
    del spec["discovered"]


def other_noise(spec: Any) -> None:
    spec["discovered"][0]["sigma"] *= 0.9


@pytest.mark.parametrize(
    "change",
    [
        lower_threshold,
        higher_threshold,
        another_value,
        small_count,
        less_delta,
        no_part_of_delta,
        nothing_discovered,
        other_noise,
    ],
)
def test_verify_finds_what_was_changed(change: Any, tmp_path: Path) -> None:
    synthesize(people(), schema=PLAIN, out=tmp_path / "r", **MWEM)
    assert verify(tmp_path / "r").ok
    damaged(tmp_path / "r", change)
    report = verify(tmp_path / "r")
    assert not report.ok
    assert not [one.reason for one in report.checks if "KeyError" in one.reason]


# --- the command line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder with a table and its schema."""
    monkeypatch.chdir(tmp_path)
    people().to_csv(tmp_path / "towns.csv", index=False)
    (tmp_path / "s.toml").write_text(TOML)
    return tmp_path


TOML = """format = 1
reviewed = true

[[column]]
name = "town"
type = "categorical"
values = "discover"

[[column]]
name = "sex"
type = "categorical"
values = ["f", "m"]

[[column]]
name = "age"
type = "numeric"
edges = [0, 18, 65, 101]
integer = true
"""


@pytest.mark.parametrize("more", [[], ["--relation", "add-remove", "--delta", "1e-6"]], ids=str)
def test_from_a_csv_file_to_figures(more: list[str], run: Run, home: Path) -> None:
    checked = run("schema", "check", "s.toml", "towns.csv")
    assert (checked.code, "s.toml has no problems, and towns.csv fits it" in checked.out) == (0, True)
    planned = run("plan", "s.toml", "--rows", "3000", "--epsilon", "2", *more)
    assert planned.code == 0
    assert "first: 5% of the budget and " in planned.out
    asked = run("workload", "marginals:2", "--data", "s.toml")
    assert asked.code == 0
    options = ["--epsilon", "2", "--method", "mwem", "--rounds", "2", "--workload", "marginals:2", *more]
    figures = run("synth", "towns.csv", "--schema", "s.toml", "--out", "first", "--json", *options)
    assert json.loads(figures.out)["delta_shown"] == 0.2 * json.loads(figures.out)["delta"]
    made = run("synth", "towns.csv", "--schema", "s.toml", "--out", "release", *options)
    assert made.code == 0
    assert "Part of delta for showing a value that only one unit has" in made.out
    assert "discover the values of town first" in made.err
    rows = pd.read_csv("release/synthetic.csv")
    assert set(rows["town"].dropna()) <= {*TOWNS, "other"}
    assert run("verify", "release", "--replay").code == 0
    assert run("evaluate", "towns.csv", "release").code == 0
    assert run("evaluate", "towns.csv", "release", "--schema", "s.toml").code == 0
    assert run("answer", "release", 'town == "Aba"').code == 0
    assert run("report", "release", "--out", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "values of columns that nobody could list beforehand" in page
    assert "in columns whose values the run has discovered" in page
    record = registry_record(Release.load("release"), None)["deployment"]
    assert record["dp_variant"]["variant_name"] == "Approximate DP"
    assert "but for those that the run has discovered" in record["dp_variant"]["unprotected_quantities"]
    assert "rho" not in record["privacy_loss"]["privacy_parameters"]


def test_the_command_line_refuses_and_writes_nothing(run: Run, home: Path) -> None:
    Path("q.toml").write_text(CONDITION)
    before = sorted(home.iterdir())
    options = ["--schema", "s.toml", "--out", "release", "--epsilon", "2"]
    refused = run("synth", "towns.csv", *options, "--workload", "q.toml")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.count("\n") == 1
    assert "column 'town' must list its values here" in refused.err
    Path("s.toml").write_text(TOML + "\n[[rule]]\nnever = 'town == \"Aba\"'\n")
    refused = run("synth", "towns.csv", *options)
    assert (refused.code, "must not be about columns whose values are discovered" in refused.err) == (2, True)
    assert run("schema", "check", "s.toml").code == 2
    assert sorted(home.iterdir()) == before


def test_an_interrupted_command_is_resumed(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def failing(*arguments: Any) -> None:
        raise OSError("the machine is off")

    options = ["--epsilon", "2", "--method", "mwem", "--rounds", "2", "--workload", "marginals:2"]
    with monkeypatch.context() as patch:
        patch.setattr(Curator, "select", failing)
        assert run("synth", "towns.csv", "--schema", "s.toml", *options).code != 0
    spent = [entry for one in journal_of("release") if one.kind == "charge" for entry in one.data["entries"]]
    assert run("resume", "release").code == 0
    release = Release.load("release")
    assert [entry.to_dict() for entry in release.description.privacy.ledger[: len(spent)]] == spent
    assert Relation(release.description.privacy.relation) is Relation.REPLACE
