"""Releases: what a folder holds, that it comes back whole, and that it appears all at once or not at all."""

from __future__ import annotations

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

from pointillist import release as release_module
from pointillist.algorithms import get_method
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError
from pointillist.framework import Log, Replay, run
from pointillist.queries.counting import exact_counts
from pointillist.queries.marginals import all_kway
from pointillist.queries.workload import Grouping
from pointillist.release import Release, check_target
from pointillist.synthesis import synthesize

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
            (entry.picks, [counts.tolist() for counts in entry.noisy], entry.sigma, entry.selected)
            for entry in log.rounds
        ]

    return (one.workload, one.total, plain(one)) == (two.workload, two.total, plain(two))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"group": "query", "settings": {"rounds": 9}},
    {"relation": "add-remove", "delta": 1e-6, "rows": 300, "settings": {"output": "average", "rounds": 4}},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_release_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    release = make(**options)
    folder = release.save(tmp_path / "deep" / "r")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    again = Release.load(folder)
    assert again.spec == release.spec == json.loads((folder / "release.json").read_text())
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
    method = get_method(release.spec["method"]["name"])
    algorithm = method.algorithm(release.workload, method.configure(release.spec["method"]["parameters"]))
    params, log = run(algorithm, Replay(release.log, release.spec["privacy"]["rho"]), release.spec["seed"])
    assert np.array_equal(params, release.params)
    assert same_log(log, release.log)
    release.log.rounds[0].noisy[0][0] += 500  # and the model does depend on the transcript
    changed, _ = run(algorithm, Replay(release.log, release.spec["privacy"]["rho"]), release.spec["seed"])
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
    with pytest.raises(InputError, match="rows must be at least 1, got 0"):
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
    truth = exact_counts(TableSource(people()), release.workload)
    for measurement in release.log.measurements:
        assert not np.array_equal(measurement.counts, truth[release.workload.group(measurement.group).flat])
    with np.load(folder / "transcript.npz") as arrays:
        assert sorted(arrays.files) == ["measured", "noisy", "picks", "selected", "sigmas"]
        assert np.array_equal(arrays["noisy"], np.concatenate([m.counts for m in release.log.measurements]))
    with np.load(folder / "model.npz") as arrays:
        assert arrays.files == ["weights"]
    spec = json.loads((folder / "release.json").read_text())
    assert sorted(spec) == [
        "format", "measurable", "method", "privacy", "private", "public", "rows", "schema", "seed", "total",
        "total_sigma", "versions", "workload",
    ]  # fmt: skip
    assert sorted(spec["workload"]) == ["grouping", "marginals", "queries"]
    ledger = spec["privacy"]["ledger"]
    assert [entry["label"] for entry in ledger] == ["selection", "measurement"] * 6
    assert all(set(entry) == {"label", "mechanism", "rho", "sensitivity", "scale"} for entry in ledger)
    assert sum(entry["rho"] for entry in ledger) <= spec["privacy"]["rho"] * (1 + 1e-12)


def test_seeded_noise_is_stamped(tmp_path: Path) -> None:
    release = make(insecure_noise_seed=4)
    assert release.spec["private"] is False
    assert release.statement.startswith("NOT PRIVATE: made with INSECURE seeded noise (seed 4)")
    spec = json.loads((release.save(tmp_path / "r") / "release.json").read_text())
    assert "NOT PRIVATE" in spec["privacy"]["statement"]
    assert "INSECURE" in spec["privacy"]["noise"]
    assert same_log(release.log, make(insecure_noise_seed=4).log)
    real = make()
    assert real.spec["private"] is True
    assert "NOT PRIVATE" not in json.dumps(real.spec)
    assert not same_log(real.log, make().log)  # the seed does not drive privacy noise


# --- all or nothing


@pytest.mark.parametrize("writer", ["_save_arrays", "_swap"])
def test_a_failing_writer_leaves_nothing(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = make()

    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(release_module, writer, fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_writer_keeps_the_old_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = make(), make(seed=6)
    folder = old.save(tmp_path / "r")
    with monkeypatch.context() as patch:
        patch.setattr(release_module, "_save_arrays", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            new.save(folder, force=True)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if Path(target) == folder and path.parent == tmp_path:
            raise OSError("no")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(OSError, match="no"):
            new.save(folder, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert Release.load(folder).spec == old.spec


def test_a_killed_process_leaves_no_folder(tmp_path: Path) -> None:
    """Killed in the midst of writing: there is no folder at the target, and a second try works."""
    code = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from pointillist import Categorical, Schema, Table, release, synthesize
        import numpy as np
        schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1))))
        table = Table(schema, (np.arange(100) % 2, np.arange(100) % 2))
        made = synthesize(table, epsilon=1.0, workload="marginals:1")
        plain = release._save_arrays

        def slow(path, arrays):
            plain(path, arrays)
            Path({str(tmp_path / "started")!r}).touch()
            time.sleep(60)

        if sys.argv[1] == "slow":
            release._save_arrays = slow
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
    assert not (tmp_path / "r").exists()
    subprocess.run([sys.executable, "-c", code, "fast"], check=True)
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == FILES


def test_force_replaces_a_release_and_nothing_else(tmp_path: Path) -> None:
    old, new = make(), make(seed=6)
    folder = old.save(tmp_path / "r")
    with pytest.raises(InputError) as caught:
        new.save(folder)
    assert str(caught.value) == (
        f"out must not exist already, got {str(folder)!r}; "
        "choose another folder, or overwrite the release with --force."
    )
    assert Release.load(folder).spec == old.spec
    new.save(folder, force=True)
    assert Release.load(folder).spec == new.spec
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
            f"out must be a release folder (with release.json) or empty to be overwritten, "
            f"got {str(tmp_path / name)!r}; choose another folder."
        )
    assert (tmp_path / "photos" / "a.jpg").exists()
    with pytest.raises(InputError, match=r"out must be in a folder that can be written to \(not .*file\)"):
        check_target(tmp_path / "file" / "deep" / "r", force=False)


# --- damaged folders


def keep(content: bytes) -> bytes:
    return content[: len(content) // 2]


def edited(**changes: Any) -> Any:
    return lambda content: json.dumps(json.loads(content) | changes).encode()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, how) for name in FILES if name != "synthetic.csv" for how in (None, keep, lambda _: b"")),
        ("release.json", lambda _: b"[]"),
        ("release.json", lambda _: b"{}"),
        ("release.json", lambda _: b"\xff\xfe"),
        ("release.json", edited(format=2)),
        ("release.json", edited(schema=None)),
        ("release.json", edited(total="many")),
        ("release.json", edited(workload={"grouping": "none", "queries": 1, "marginals": [["sex"]]})),
        ("release.json", edited(workload={"grouping": "marginal", "queries": 1, "marginals": [["sex"]]})),
        ("release.json", edited(method={"name": "mwem", "parameters": {"speed": 3}})),
        ("release.json", edited(method={"name": "none", "parameters": {}})),
        ("model.npz", lambda _: b"PK\x03\x04 garbage"),
        ("transcript.npz", lambda _: b"garbage"),
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


def test_a_model_of_another_release_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(saved, folder)
    np.savez(folder / "model.npz", weights=np.ones((2, 2)))
    with pytest.raises(
        InputError, match=r"release must be undamaged \(ValueError: .*\), got .*; make the release again"
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
    with pytest.raises(InputError, match=r"seed must be in 0 \.\. 2\^63 - 1, got -1; use 0"):
        synthesize(table, epsilon=1.0, seed=-1)
    release = synthesize(
        table.to_pandas(),
        epsilon=1.0,
        schema=table.schema,
        workload=all_kway(table.domain, 2),
        group="query",
        settings={"rounds": 2},
    )
    assert release.workload.grouping is Grouping.QUERY
    assert len(release.table) == N
