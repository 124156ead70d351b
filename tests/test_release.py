"""Releases: what a folder holds, that it comes back whole, and that it appears all at once or not at all."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointillist import algorithms, synthesize
from pointillist.algorithms import Task, get_method
from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError
from pointillist.framework import Log, Replay, run
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import minus
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping
from pointillist.queries.cells import box_of
from pointillist.queries.counting import exact_counts
from pointillist.queries.kway import all_kway
from pointillist.queries.product import Product
from pointillist.queries.workload import Workload
from pointillist.release import Release, check_target, safe
from pointillist.release import folder as folder_module
from pointillist.release import place as place_module

FILES = ["model.npz", "release.json", "synthetic.csv", "synthetic.parquet", "transcript.npz"]
N = 1237


def people(rows: int = N) -> Table:
    rng = np.random.default_rng(3)
    schema = Schema(
        (
            Categorical("sex", ("f", "m")),
            Categorical("zip", ("01", "02", 'a "b", c'), missing=True, dtype="category"),
            Numeric("age", (0, 18, 65, 120), integer=True, dtype="int16"),
            Numeric("pay", (0.0, 10.5, 99.0), clip=True),
        )
    )
    return Table(schema, tuple(rng.integers(0, size, rows) for size in schema.domain.sizes))


def make(**options: Any) -> Release:
    plan: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "seed": 5, "method": "mwem"}
    return synthesize(people(), **(plan | options))


def same_codes(one: Table, two: Table) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.codes, two.codes, strict=True))


def same_log(one: Log, two: Log) -> bool:
    def plain(log: Log) -> list[Any]:
        return [
            (entry.picks, [(m.queries, m.counts.tolist(), m.sigma) for m in entry.measurements], entry.selected)
            for entry in log.rounds
        ]

    return (one.facts, one.info, one.start, plain(one)) == (two.facts, two.info, two.start, plain(two))


DOMAIN = people(2).domain
BY_AGE = Product.of(DOMAIN, {"sex": "values", "age": "prefixes"})
PREFIXES = Workload.of(DOMAIN, [("zip", "sex"), BY_AGE, Product.of(DOMAIN, {"zip": "prefixes"}).take([2, 0]), ("pay",)])
"""Marginals, products and some queries of one."""

OPTIONS: list[dict[str, Any]] = [
    {},
    {"group": "query", "settings": {"rounds": 9}},
    {"relation": "add-remove", "delta": 1e-6, "rows": 300, "settings": {"output": "average", "rounds": 4}},
    {"workload": PREFIXES, "group": "query", "settings": {"rounds": 5}},
    {"workload": PREFIXES, "group": "marginal", "settings": {"rounds": 4}},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_release_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    release = make(**options)
    folder = release.save(tmp_path / "deep" / "r")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    again = Release.load(folder)
    assert again.description == release.description
    assert json.loads((folder / "release.json").read_text()) == json.loads(json.dumps(release.description.to_dict()))
    assert again.schema == release.schema
    assert again.workload == release.workload
    assert same_codes(again.table, release.table)
    assert np.array_equal(again.answers(), release.answers())
    other = all_kway(release.schema.domain, 3)
    assert np.array_equal(again.answers(other), release.answers(other))
    assert same_codes(again.sample(77, seed=2), release.sample(77, seed=2))
    assert len(again.sample(77)) == 77
    assert same_log(again.log, release.log)
    assert len(release.log.rounds) > 3
    assert again.statement == release.statement


@pytest.mark.parametrize("options", OPTIONS)
def test_a_loaded_transcript_replays_to_the_same_model(options: dict[str, Any], tmp_path: Path) -> None:
    release = Release.load(make(**options).save(tmp_path / "r"))
    used = release.description.method
    method = get_method(used.name)
    task = Task(release.workload, Grouping(used.grouping))
    algorithm = method.algorithm(task, method.configure(used.settings))
    params, log = run(algorithm, Replay(release.log), release.description.seed)
    assert np.array_equal(params, release.params)
    assert same_log(log, release.log)
    release.log.rounds[0].measurements[0].counts[0] += 500  # and the model does depend on the transcript
    changed, _ = run(algorithm, Replay(release.log), release.description.seed)
    assert not np.array_equal(changed, release.params)


def test_both_tables_of_a_folder_hold_the_same_rows(tmp_path: Path) -> None:
    release = make()
    folder = release.save(tmp_path / "r")
    tables = [read_file(folder / name) for name in ("synthetic.csv", "synthetic.parquet")]
    assert all(same_codes(Table.encode(table, release.schema), release.table) for table in tables)
    assert tables[0].column("age").to_pylist() == [str(age) for age in tables[1].column("age").to_pylist()]
    assert len(release.table) == N
    assert tables[1].schema.field("age").type == pa.int16()


def test_answers_to_another_domain_are_refused() -> None:
    release = make()
    other = all_kway(people().project(["sex", "age"]).domain, 2)
    with pytest.raises(InputError, match=r"workload must be over the release's columns, got another domain; build it"):
        release.answers(other)
    with pytest.raises(InputError, match=r"rows must be in 1 \.\. 1,000,000,000, got 0"):
        release.sample(0)


# --- privacy of what is written


def numbers_in(value: Any) -> Iterator[float]:
    """Every number in a JSON value, also in its texts."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from numbers_in(key)
            yield from numbers_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from numbers_in(entry)
    elif isinstance(value, str):
        yield from (float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def test_n_is_stated_under_replace_only(tmp_path: Path) -> None:
    spec = json.loads((make().save(tmp_path / "a") / "release.json").read_text())
    assert N in set(numbers_in(spec))
    assert f"n = {N:,}" in spec["privacy"]["statement"]
    options = {"relation": "add-remove", "delta": 1e-6, "insecure_noise_seed": 1}
    folder = make(**options).save(tmp_path / "b")
    spec = json.loads((folder / "release.json").read_text())
    found = set(numbers_in(spec))
    assert spec["total"] in found
    assert N not in found
    assert 1 / N**2 not in found
    assert spec["rows"] == spec["total"] == len(Release.load(folder).table) != N


def test_a_release_holds_no_true_answers(tmp_path: Path) -> None:
    """The noise is large enough here that no measured marginal can be exact by chance."""
    release = make(epsilon=0.1, settings={"rounds": 6})
    folder = release.save(tmp_path / "r")
    for measurement in release.log.measurements:
        truth = exact_counts(TableSource(people()), [measurement.queries])
        assert not np.array_equal(measurement.counts, truth)
    with np.load(folder / "transcript.npz") as arrays:
        assert sorted(arrays.files) == ["asked", "counts", "measured", "picks", "selected", "sigmas"]
        assert np.array_equal(arrays["counts"], np.concatenate([m.counts for m in release.log.measurements]))
    with np.load(folder / "model.npz") as arrays:
        assert arrays.files == ["weights"]
    spec = json.loads((folder / "release.json").read_text())
    assert sorted(spec) == [
        "family", "format", "given", "method", "privacy", "public", "rho", "rows", "schema", "seed", "total",
        "total_sigma", "versions", "workload",
    ]  # fmt: skip
    assert sorted(spec["method"]) == ["grouping", "name", "settings", "start", "strategy"]
    assert sorted(spec["workload"]) == ["queries", "size"]
    assert sorted(spec["privacy"]) == [
        "accounting", "delta", "epsilon", "ledger", "noise", "private", "relation", "rho", "rho_spent", "statement",
    ]  # fmt: skip
    ledger = spec["privacy"]["ledger"]
    assert [entry["label"] for entry in ledger] == ["selection", "measurement"] * 6
    assert all(set(entry) == {"label", "mechanism", "rho", "sensitivity", "scale"} for entry in ledger)
    assert sum(entry["rho"] for entry in ledger) <= spec["privacy"]["rho"] * (1 + 1e-12)


def test_seeded_noise_is_stamped(tmp_path: Path) -> None:
    release = make(insecure_noise_seed=4)
    assert release.description.privacy.private is False
    assert release.statement.startswith("NOT PRIVATE: made with INSECURE seeded noise (seed 4)")
    spec = json.loads((release.save(tmp_path / "r") / "release.json").read_text())
    assert "NOT PRIVATE" in spec["privacy"]["statement"]
    assert "INSECURE" in spec["privacy"]["noise"]
    assert same_log(release.log, make(insecure_noise_seed=4).log)
    real = make()
    assert real.description.privacy.private is True
    assert "NOT PRIVATE" not in json.dumps(real.description.to_dict())
    assert not same_log(real.log, make().log)  # the seed does not drive privacy noise


# --- all or nothing


def test_a_failing_writer_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = make()

    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(folder_module, "_save_arrays", fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_writer_keeps_the_old_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = make(), make(seed=6)
    folder = old.save(tmp_path / "r")
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "_save_arrays", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            new.save(folder, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert Release.load(folder).description == old.description


@pytest.mark.parametrize("atomic", [True, False])
def test_a_release_is_replaced_and_its_ledger_kept(
    atomic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one step, or in several where the system has none that swaps two folders."""
    old, new = make(), make(seed=6)
    folder = old.save(tmp_path / "r")
    if not atomic:
        monkeypatch.setattr(place_module.ctypes, "CDLL", lambda *arguments, **options: object())
    new.save(folder, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert Release.load(folder).description == new.description
    (kept,) = json.loads((folder / "replaced.json").read_text())
    assert kept["privacy"] == json.loads(json.dumps(old.description.to_dict()))["privacy"]
    new.save(folder, force=True)
    assert len(json.loads((folder / "replaced.json").read_text())) == 2
    (folder / "replaced.json").write_bytes(b"[{\xff")  # somebody's damage stops no run, and is not lost either
    new.save(folder, force=True)
    first, second = json.loads((folder / "replaced.json").read_text())
    assert (first, second["privacy"]) == ({"unreadable": "[{\ufffd"}, kept["privacy"] | second["privacy"])


def test_a_killed_process_leaves_no_release(tmp_path: Path) -> None:
    """Killed in the middle of writing: there is no release at the target, and a second try works."""
    code = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from pointillist import Categorical, Schema, Table, synthesize
        from pointillist.release import folder
        import numpy as np
        schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1))))
        table = Table(schema, (np.arange(100) % 2, np.arange(100) % 2))
        made = synthesize(table, epsilon=1.0, workload="marginals:1")
        plain = folder._save_arrays

        def slow(path, arrays):
            plain(path, arrays)
            Path({str(tmp_path / "started")!r}).touch()
            time.sleep(60)

        if sys.argv[1] == "slow":
            folder._save_arrays = slow
        made.save({str(tmp_path / "r")!r})
        """
    )
    process = subprocess.Popen([sys.executable, "-c", code, "slow"])
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        assert (tmp_path / "started").exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.raises(InputError, match=r"must be a release folder with release\.json in it"):
        Release.load(tmp_path / "r")
    subprocess.run([sys.executable, "-c", code, "fast"], check=True)
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == FILES


def test_force_replaces_a_release_and_nothing_else(tmp_path: Path) -> None:
    old, new = make(), make(seed=6)
    folder = old.save(tmp_path / "r")
    with pytest.raises(InputError) as caught:
        new.save(folder)
    assert str(caught.value) == (
        f"out must not exist already, got {str(folder)!r}; choose another folder, or replace the release with --force."
    )
    assert Release.load(folder).description == old.description
    new.save(folder, force=True)
    assert Release.load(folder).description == new.description
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    (tmp_path / "empty").mkdir()
    new.save(tmp_path / "empty", force=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").touch()
    (tmp_path / "file").touch()
    for name in ("photos", "file"):
        with pytest.raises(InputError) as caught:
            new.save(tmp_path / name, force=True)
        assert str(caught.value) == (
            f"out must be a release with no other files in it to be replaced, "
            f"got {str(tmp_path / name)!r}; choose another folder."
        )
    assert (tmp_path / "photos" / "a.jpg").exists()
    with pytest.raises(InputError, match=r"out must be in a folder that can be written to \(not .*file\)"):
        check_target(tmp_path / "file" / "deep" / "r", force=False)


# --- damaged folders


def keep(content: bytes) -> bytes:
    return content[: len(content) // 2]


DELETED = object()


def edited(*path: str, to: Any) -> Any:
    """The description with one entry changed, or deleted."""

    def edit(content: bytes) -> bytes:
        spec = entries = json.loads(content)
        *outer, last = path
        for name in outer:
            entries = entries[name]
        if to is DELETED:
            del entries[last]
        else:
            entries[last] = to
        return json.dumps(spec).encode()

    return edit


def rewritten(**changes: Any) -> Any:
    """The arrays with some of them changed."""

    def rewrite(content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as found:
            arrays = {name: found[name] for name in found}
        target = io.BytesIO()
        np.savez(target, **arrays | {name: change(arrays[name]) for name, change in changes.items()})
        return target.getvalue()

    return rewrite


MARGINAL_OF_NOTHING = {"kind": "marginal", "attributes": ["none"]}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, how) for name in FILES if name != "synthetic.csv" for how in (None, keep, lambda _: b"")),
        ("release.json", lambda _: b"[]"),
        ("release.json", lambda _: b"{}"),
        ("release.json", lambda _: b"\xff\xfe"),
        ("release.json", edited("format", to=3)),
        ("release.json", edited("format", to="2")),
        ("release.json", edited("format", to=DELETED)),
        ("release.json", edited("schema", to=None)),
        ("release.json", edited("schema", "column", to=[])),
        ("release.json", edited("total", to="many")),
        ("release.json", edited("total", to=DELETED)),
        ("release.json", edited("rho", to=None)),
        ("release.json", edited("more", to=1)),
        ("release.json", edited("workload", to={})),
        ("release.json", edited("workload", "queries", to=[])),
        ("release.json", edited("workload", "queries", to=[{"kind": "none"}])),
        ("release.json", edited("workload", "queries", to=[MARGINAL_OF_NOTHING])),
        ("release.json", edited("family", to={})),
        ("release.json", edited("family", to={"kind": "none"})),
        ("release.json", edited("family", to={"kind": "records"})),
        ("release.json", edited("method", to={"name": "mwem", "settings": {}})),
        ("release.json", edited("method", "settings", to=[])),
        ("release.json", edited("privacy", to=None)),
        ("release.json", edited("privacy", "relation", to="none")),
        ("release.json", edited("privacy", "ledger", to=[{"label": "selection"}])),
        ("release.json", edited("privacy", "private", to="no")),
        ("release.json", edited("public", to={})),
        ("model.npz", lambda _: b"PK\x03\x04 garbage"),
        ("transcript.npz", lambda _: b"garbage"),
        ("transcript.npz", rewritten(counts=lambda counts: counts[:-1])),
        ("transcript.npz", rewritten(counts=lambda counts: np.append(counts, 7))),
        ("transcript.npz", rewritten(sigmas=lambda sigmas: sigmas[:-1])),
        ("transcript.npz", rewritten(asked=lambda _: np.array("[{"))),
        ("transcript.npz", rewritten(asked=lambda _: np.array('[{"kind": "none"}]'))),
        ("transcript.npz", rewritten(picks=lambda picks: picks + 50)),
    ],
)
def test_damage_is_told_in_a_sentence(name: str, damage: Any, saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(saved, folder)
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(content))
    with pytest.raises(InputError) as caught:
        Release.load(folder)
    assert "\n" not in str(caught.value)
    assert re.fullmatch(r".+ must .+, got .+; .+\.", str(caught.value))


def test_a_model_of_another_release_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(saved, folder)
    np.savez(folder / "model.npz", weights=np.ones((2, 2)))
    with pytest.raises(
        InputError, match=r"release: model, weights must have the shape .*, got .*; make the release again"
    ):
        Release.load(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(settings={"rounds": 3}).save(tmp_path_factory.mktemp("saved") / "r")


def test_the_library_refuses_before_it_spends() -> None:
    table = people()
    with pytest.raises(InputError, match="schema must be given with a plain table"):
        synthesize(table.to_arrow(), epsilon=1.0)
    with pytest.raises(InputError, match=r"workload must be over the table's columns, got another domain"):
        synthesize(table, epsilon=1.0, workload=all_kway(table.project(["sex"]).domain, 1))
    with pytest.raises(InputError, match=r"seed must be in 0 \.\. 9,223,372,036,854,775,807, got -1; use 0"):
        synthesize(table, epsilon=1.0, seed=-1)
    release = synthesize(
        table.to_pandas(),
        epsilon=1.0,
        schema=table.schema,
        workload=all_kway(table.domain, 2),
        group="query",
        settings={"rounds": 2},
    )
    assert release.description.method.grouping == "query"
    assert len(release.table) == N


# --- independent of the method that made it


def test_a_release_loads_whatever_became_of_its_method(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method, its name and its settings are a record only."""
    whole = Release.load(saved)
    folder = shutil.copytree(saved, tmp_path / "r")
    changes = (("name", "renamed"), ("settings", {"speed": 3}), ("grouping", "none"), ("strategy", "Other()"))
    for name, value in changes:
        path = folder / "release.json"
        path.write_bytes(edited("method", name, to=value)(path.read_bytes()))
    monkeypatch.setattr(algorithms, "METHODS", {})
    again = Release.load(folder)
    assert again.description.method.name == "renamed"
    assert again.description.method.settings == {"speed": 3}
    assert np.array_equal(again.answers(), whole.answers())
    assert same_codes(again.sample(20), whole.sample(20))
    assert same_log(again.log, whole.log)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (edited("format", to=3), "release: format must be 1 or 2, got 3; update pointillist."),
        (
            edited("privacy", to=None),
            "release: privacy must be a table of entries, got 'NoneType'; make the release again.",
        ),
        (
            edited("privacy", "ledger", to=[7]),
            "release: privacy: ledger must be a table of entries, got 'int'; make the release again.",
        ),
    ],
)
def test_sentences_of_damaged_entries(edit: Any, sentence: str, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "r")
    (folder / "release.json").write_bytes(edit((folder / "release.json").read_bytes()))
    with pytest.raises(InputError) as caught:
        Release.load(folder)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("path", [("total",), ("method", "name"), ("privacy", "epsilon"), ("public", "missing")])
def test_a_mistyped_entry_is_named(path: tuple[str, ...], saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "r")
    file = folder / "release.json"
    if path[0] == "public":
        public = {"rows": 1, "records": 1, "missing": [], "sha256": ""}
        file.write_bytes(edited("public", to=public)(file.read_bytes()))
    file.write_bytes(edited(*path, to={})(file.read_bytes()))
    with pytest.raises(
        InputError, match=rf"^release: {': '.join(path)} must be of type .+, got 'dict'; make the release again\.$"
    ):
        Release.load(folder)


@pytest.mark.parametrize(("name", "to"), [("total", DELETED), ("more", 1)])
def test_a_missing_or_unknown_entry_is_named(name: str, to: Any, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "r")
    file = folder / "release.json"
    file.write_bytes(edited(name, to=to)(file.read_bytes()))
    sentence = rf"^release must have exactly the entries of its format, got (missing|unknown) {name}; make the release"
    with pytest.raises(InputError, match=sentence):
        Release.load(folder)


# --- format 1

OLD = Path(__file__).parent / "release_format1"
NAMES = sorted(path.name for path in OLD.iterdir() if path.is_dir() and path.name != "__pycache__")
"""Releases that the code before format 2 wrote; release_format1/make.py says how."""


def expected_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OLD / name / "expected.json").read_text())
    return found


def told(queries: Queries, domain: Domain) -> list[Any]:
    """Queries as the names of the attributes, and the values of a single query."""
    box = box_of(queries)
    values = None if box is None else [low for low, _ in box.values()]
    return [[domain.names[i] for i in queries.scope], values]


def test_there_are_releases_of_every_family() -> None:
    kinds = {json.dumps(Release.load(OLD / name).description.family.get("kind")) for name in NAMES}
    assert kinds == {'"histogram"', '"relaxed"', '"public records"', '"records"'}
    models = {Release.load(OLD / name).description.family.get("model", {}).get("kind") for name in NAMES}
    assert models >= {"softmax", "clipped", "generator"}
    assert all(json.loads((OLD / name / "release.json").read_text())["format"] == 1 for name in NAMES)


def test_a_large_histogram_of_format_1_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights compress a thousandfold: such a file is honest where the domain has that number of cells."""
    folder = shutil.copytree(OLD / "mwem", tmp_path / "r")
    domain = Schema.from_dict(json.loads((folder / "release.json").read_text())["schema"]).domain
    limits = {"model.npz": 8 * domain.cells - 1, "transcript.npz": 10**6}
    for module in (folder_module, safe):
        monkeypatch.setattr(module, "claimed_limit", lambda path: limits[path.name])
    assert Release.load(folder).description.family == {"kind": "histogram"}


@pytest.mark.parametrize("name", NAMES)
def test_a_release_of_format_1_loads(name: str) -> None:
    release, expected = Release.load(OLD / name), expected_of(name)
    assert [codes.tolist() for codes in release.table.codes] == expected["table"]
    domain = release.schema.domain
    assert release.workload == all_kway(domain, 2)
    answers = np.concatenate([release.answers(all_kway(domain, k)) for k in (1, 2, 3)])
    expected_answers = np.clip(np.load(OLD / name / "answers.npy"), 0, 1)  # those of rap went below 0 at the time
    assert np.allclose(answers, expected_answers, rtol=0, atol=1e-6)
    assert np.array_equal(release.answers(), release.answers(all_kway(domain, 2)))
    sample = release.sample(9, seed=2)
    assert sample.schema == release.schema
    assert len(sample) == 9
    if release.description.family["kind"] != "relaxed":  # those are computed in 32 bits, which machines may differ in
        assert [codes.tolist() for codes in sample.codes] == expected["sample"]


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_of_format_1_loads(name: str) -> None:
    release, expected = Release.load(OLD / name), expected_of(name)
    domain = release.schema.domain
    assert len(release.log.rounds) == len(release.log.info) == len(expected["rounds"]) > 0
    for entry, info, old in zip(release.log.rounds, release.log.info, expected["rounds"], strict=True):
        assert (entry.selected, info) == (old["selected"], old["notes"])
        asked = [[names, values] for names, values, _ in old["picks"]]
        measured = bool(old["counts"])
        assert [told(m.queries, domain) for m in entry.measurements] == (asked if measured else [])
        assert [m.counts.tolist() for m in entry.measurements] == old["counts"]
        assert {m.sigma for m in entry.measurements} == ({old["sigma"]} if measured else set())
        picks = [[*told(pick.queries, domain), pick.sign] for pick in entry.picks]
        fixed = measured and not old["selected"]  # measured without being chosen: no picks now
        assert picks == ([] if fixed else old["picks"])


@pytest.mark.parametrize("name", NAMES)
def test_a_description_of_format_1_loads(name: str) -> None:
    old = json.loads((OLD / name / "release.json").read_text())
    release = Release.load(OLD / name)
    about = release.description
    assert about.format == 2
    assert (about.method.name, about.method.settings) == (old["method"]["name"], old["method"]["parameters"])
    assert (about.method.strategy, about.method.start) == (old["method"]["schedule"], old["method"]["start"])
    assert (release.log.start, about.method.grouping) == (old["method"]["start"], old["workload"]["grouping"])
    privacy = json.loads(json.dumps(about.to_dict()["privacy"]))
    assert privacy == old["privacy"] | {"private": False}
    assert release.statement == old["privacy"]["statement"]
    assert release.statement.startswith("NOT PRIVATE: made with INSECURE seeded noise (seed 1)")
    for entry in ("total", "total_sigma", "rows", "seed", "schema", "versions"):
        assert getattr(about, entry) == old[entry]
    assert json.loads(json.dumps(about.to_dict()))["public"] == old["public"]
    counted = [entry["rho"] for entry in old["privacy"]["ledger"] if entry["label"] == "number of rows"]
    rho = minus(old["privacy"]["rho"], counted[0]) if counted else old["privacy"]["rho"]
    assert release.log.facts == Facts(old["total"], rho, about.facts.relation, old["total_sigma"])
    assert (release.log.facts.total_sigma > 0) == (about.privacy.relation == "add-remove")


@pytest.mark.parametrize("name", NAMES)
def test_a_release_of_format_1_is_saved_in_the_present_format(name: str, tmp_path: Path) -> None:
    release = Release.load(OLD / name)
    folder = release.save(tmp_path / "r")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert json.loads((folder / "release.json").read_text())["format"] == 2
    again = Release.load(folder)
    assert again.description == release.description
    assert same_codes(again.table, release.table)
    assert np.array_equal(again.answers(), release.answers())
    assert same_codes(again.sample(9, seed=2), release.sample(9, seed=2))
    assert same_log(again.log, release.log)


def test_the_old_transcript_replays_to_the_old_model() -> None:
    """The rounds of a release of format 1 make its model, as the present code makes models."""
    release = Release.load(OLD / "mwem")
    method = get_method("mwem")
    task = Task(release.workload, Grouping(release.description.method.grouping))
    algorithm = method.algorithm(task, method.configure(release.description.method.settings))
    params, log = run(algorithm, Replay(release.log), release.description.seed)
    assert np.array_equal(params, release.params)
    assert same_log(log, release.log)


def test_damage_in_format_1_is_told_in_a_sentence(tmp_path: Path) -> None:
    folder = shutil.copytree(OLD / "mwem", tmp_path / "r")
    file = folder / "release.json"
    whole = file.read_bytes()
    for path in (("method",), ("privacy", "ledger"), ("workload",), ("measurable",), ("total",)):
        file.write_bytes(edited(*path, to=DELETED)(whole))
        with pytest.raises(InputError, match=r"^release must be undamaged \(KeyError: .+\), got .+; make the release"):
            Release.load(folder)
