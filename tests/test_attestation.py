"""Signed releases: a good one verifies and replays, and every kind of tampering is caught by the check meant for it."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import stat
import sys
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import parquet
from tests.command import tree
from tests.contract.test_contract import CASES, make, prefixes, public_table, small_table
from typer.testing import CliRunner

from pointillist import (
    Categorical,
    Constant,
    Grouping,
    Identifier,
    InputError,
    Numeric,
    Predicates,
    Release,
    Schema,
    Table,
    Temporal,
    Workload,
    cli_attest,
    parse_workload,
    synthesize,
)
from pointillist.algorithms import METHODS, Method, Public
from pointillist.attestation import Report, make_keys, sign, verify
from pointillist.attestation import files as files_module
from pointillist.attestation.envelope import PAYLOAD_TYPE, PREDICATE_TYPE, pae
from pointillist.attestation.findings import one_line
from pointillist.attestation.keys import PASSWORD, keyid_of, private_key, public_key, raw_key
from pointillist.data.neighbours import Relation
from pointillist.data.table import read_file, write_file
from pointillist.errors import PointillistError
from pointillist.privacy.sensitivity import of_counts
from pointillist.queries.halfspaces import Halfspaces

RELEASE = ["model.npz", "release.json", "synthetic.csv", "synthetic.parquet", "transcript.npz"]
SIGNED = sorted([*RELEASE, "manifest.json", "attestation.json"])


def people(rows: int = 300) -> Table:
    rng = np.random.default_rng(3)
    columns = (
        Categorical("sex", ("f", "m")),
        Categorical("zip", ("01", "02", 'a "b", c'), missing=True, dtype="category"),
        Numeric("age", (0, 18, 65, 120), integer=True, dtype="int16"),
        Numeric("pay", (0.0, 10.5, 99.0), clip=True, missing=True),
        Categorical("owner", (True, False)),
    )
    schema = Schema(columns)
    return Table(schema, tuple(rng.integers(0, size, rows) for size in schema.domain.sizes))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that is not signed."""
    options: dict[str, Any] = {"method": "mwem", "workload": "marginals:2", "seed": 5, "settings": {"rounds": 3}}
    return synthesize(people(), epsilon=1.0, **options).save(tmp_path_factory.mktemp("made") / "r")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_keys(tmp_path_factory.mktemp("keys") / "key.pem")


@pytest.fixture
def plain(made: Path, tmp_path: Path) -> Path:
    """A copy of the release, to be tampered with."""
    return shutil.copytree(made, tmp_path / "plain")


@pytest.fixture
def signed(made: Path, keys: tuple[Path, Path], tmp_path: Path) -> Path:
    """A signed copy of the release."""
    folder = shutil.copytree(made, tmp_path / "signed")
    sign(folder, keys[0])
    return folder


def failed(report: Report) -> set[str]:
    return {one.name for one in report.checks if one.status == "failed"}


def statuses(report: Report) -> dict[str, str]:
    return {one.name: one.status for one in report.checks}


# --- good releases


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_every_method_verifies_and_replays(
    method: Method, grouping: Grouping, relation: Relation, tmp_path: Path
) -> None:
    folder = make(method, grouping, relation, None, seed=5).run().save(tmp_path / "r")
    report = verify(folder, replay=True, public=public_table(method))
    assert failed(report) == set()
    assert report.private is True
    left_out = [one.name for one in report.checks if one.status == "skipped"]
    assert left_out == ["manifest", "signature", "replicates", "replayed replicate"]
    assert "bit for bit" in report["replayed model"].reason


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", ["mwem", "auto"])
def test_releases_for_products_verify(name: str, relation: Relation, tmp_path: Path) -> None:
    folder = make(METHODS[name], Grouping.MARGINAL, relation, None, workload=prefixes()).run().save(tmp_path / "r")
    assert failed(verify(folder, replay=True, public=public_table(METHODS[name]))) == set()


@pytest.mark.parametrize("thresholds", [[1], [0, 1, 2]])
def test_releases_for_halfspaces_verify(thresholds: list[int], tmp_path: Path) -> None:
    """Their intervals are those of a score, not one list for each attribute."""
    domain = small_table().domain
    workload = Workload.of(domain, [Halfspaces.of(domain, {"a": [0, 1, 2], "b": [0, 1]}, thresholds)])
    job = make(METHODS["mwem"], Grouping.MARGINAL, noise_seed=None, workload=workload, settings={"rounds": 1})
    assert failed(verify(job.run().save(tmp_path / "r"), replay=True)) == set()


def test_squares_too_large_for_floating_point_verify(tmp_path: Path) -> None:
    """Those of residuals, times that of the rows of a unit: their roots are rounded."""
    columns = {name: np.tile(["a", "b", "c"], 200) for name in "wxyz"}
    frame = pa.table(columns | {"who": np.arange(600) % 60})
    schema = Schema(tuple(Categorical(name, ("a", "b", "c")) for name in columns), ignore=("who",))
    options: dict[str, Any] = {"method": "hdmm", "workload": "marginals:1", "settings": {"answers": "raw"}}
    options |= {"epsilon": 9.0, "delta": 1e-9, "unit": "who", "max_rows": 13}
    release = synthesize(frame, schema=schema, **options)
    folder = release.save(tmp_path / "r")
    paid = release.description.privacy.ledger[-1].sensitivity
    (measured,) = release.log.measurements
    assert paid**2 < of_counts(measured.queries, release.description.facts).l2_squared
    assert failed(verify(folder)) == set()


def test_releases_for_halfspaces_and_conditions_verify(tmp_path: Path) -> None:
    table = people()
    domain = table.schema.domain
    conditions = [Predicates.of(table.schema, "age >= 65 and owner == true", 'sex == "f"')]
    texts = parse_workload("marginals:1 + halfspaces:3 + conditionals:sex:2", table.schema).queries
    workload = Workload(domain, (*texts, *conditions))
    options: dict[str, Any] = {"epsilon": 1.0, "method": "mwem", "settings": {"rounds": 3}}
    for group in Grouping:
        release = synthesize(table, workload=workload, group=group, **options)
        assert failed(verify(release.save(tmp_path / group.value), replay=True)) == set()


def test_releases_with_every_kind_of_column_verify(tmp_path: Path) -> None:
    years = ("2020-01-01", "2021-12-31")
    schema = Schema.of(
        [
            Identifier("id", prefix="P", digits=3),
            Temporal("day", "date", years, bins="year", dtype="string", format="%d.%m.%Y", missing=True),
            Temporal("at", "timestamp", years, bins="year", step="second", zone="Europe/Berlin"),
            Constant("country", "Deutschland", "large_string"),
            Temporal("took", "duration", ("-3 days", "3 days"), bins="day", step="second"),
            Temporal("hour", "time", bins="hour", step="minute"),
            Temporal("left", "time", ("08:00", "11:59"), bins="hour", step="minute", format="hhmm", missing=True),
            Categorical("price", ("1.20", "3.00"), dtype="decimal(5, 2)"),
            Categorical("job", ("a", "b"), missing=True, missing_as="NA", dtype="enum"),
            Identifier("key", kind="uuid"),
            Constant("void"),
        ]
    )
    rng = np.random.default_rng(3)
    table = Table(schema, tuple(rng.integers(0, size, 300) for size in schema.domain.sizes))
    release = synthesize(table, epsilon=1.0, method="rap_softmax", workload="marginals:1", settings={"rounds": 2})
    folder = release.save(tmp_path / "r")
    assert failed(verify(folder, replay=True)) == set()
    again = Release.load(folder)
    assert again.table.to_arrow(again.description.seed).equals(release.table.to_arrow(release.description.seed))
    assert parquet.read_table(folder / "synthetic.parquet").column_names == list(schema.names)
    for name, text in (
        ("hour", "00:00:00"),
        ("day", "01.01.2020"),
        ("took", "-259200"),
        ("at", "2020-01-01T00:00:00Z"),
    ):
        copy = shutil.copytree(folder, tmp_path / name)
        texts = read_file(copy / "synthetic.csv")
        place = texts.column_names.index(name)
        cells = [text] * len(texts)  # in the schema, but not those of the other file
        write_file(texts.set_column(place, name, pa.array(cells)), copy / "synthetic.csv")
        assert "tables" in failed(verify(copy))


def test_later_rounds_of_auto_verify(tmp_path: Path) -> None:
    """Their score is more sensitive than the queries that it picks: the replay knows."""
    settings = {"rows": 20, "t_max": 30, "adaptive_rounds": 2, "strength": 1}
    job = make(METHODS["auto"], Grouping.MARGINAL, noise_seed=None, settings=settings, public=None)
    folder = job.run().save(tmp_path / "r")
    assert failed(verify(folder, replay=True)) == set()
    edit(folder, halved_selection)
    report = verify(folder, replay=True)
    assert failed(report) == {"replayed model"}
    assert "a score can change by" in report["replayed model"].reason


@pytest.mark.parametrize("name", ["adaptive", "auto", "dualquery", "gem", "gem_pub", "mwem", "pmw_pub", "rap"])
def test_releases_of_the_first_format_verify(name: str, tmp_path: Path) -> None:
    for file in RELEASE:
        shutil.copy(Path(__file__).parent / "release_format1" / name / file, tmp_path / file)
    report = verify(tmp_path)
    assert failed(report) == set()
    assert report.private is False


def test_a_signed_release_verifies(signed: Path, made: Path, keys: tuple[Path, Path]) -> None:
    assert sorted(path.name for path in signed.iterdir()) == SIGNED
    assert {name: (signed / name).read_bytes() for name in RELEASE} == tree(made)
    report = verify(signed, keys[1], replay=True)
    assert {name for name, status in statuses(report).items() if status != "ok"} == {"replicates", "replayed replicate"}
    assert report["replicates"].status == "skipped"
    keyid = keyid_of(raw_key(public_key(keys[1])))
    assert keyid in report["signature"].reason
    assert "--public-key" in verify(signed)["signature"].reason  # who signed is not known without the key
    assert Release.load(signed).description == Release.load(made).description


def test_what_is_not_private_verifies_and_says_so(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    release = synthesize(people(), epsilon=1.0, method="mwem", workload="marginals:1", insecure_noise_seed=3)
    folder = release.save(tmp_path / "r")
    assert sign(folder, keys[0]).private is False
    report = verify(folder, keys[1], replay=True)
    assert failed(report) == set()
    assert report.private is False
    assert report["noise"].reason.startswith("NOT PRIVATE: INSECURE seeded noise (seed 3)")
    assert statement_in(folder)["predicate"]["private"] is False


def test_rows_fewer_than_n_and_one_row(tmp_path: Path) -> None:
    release = synthesize(people(), epsilon=1.0, method="mwem", workload="marginals:1", rows=1)
    assert failed(verify(release.save(tmp_path / "r"), replay=True)) == set()


# --- what is signed


def statement_in(folder: Path) -> dict[str, Any]:
    envelope = json.loads((folder / "attestation.json").read_text())
    found: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    return found


def test_the_encoding_is_that_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_the_envelope_can_be_checked_by_others(signed: Path, keys: tuple[Path, Path]) -> None:
    """With nothing but the public key and the text of the specifications."""
    import hashlib

    envelope = json.loads((signed / "attestation.json").read_text())
    assert sorted(envelope) == ["payload", "payloadType", "signatures"]
    assert envelope["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    body = base64.b64decode(envelope["payload"], validate=True)
    (signature,) = envelope["signatures"]
    key = public_key(keys[1])
    key.verify(base64.b64decode(signature["sig"]), b"DSSEv1 28 application/vnd.in-toto+json %d " % len(body) + body)
    assert signature["keyid"] == hashlib.sha256(key.public_bytes_raw()).hexdigest()
    statement = json.loads(body)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == PREDICATE_TYPE
    assert [one["name"] for one in statement["subject"]] == sorted([*RELEASE, "manifest.json"])
    for one in statement["subject"]:
        assert one["digest"] == {"sha256": hashlib.sha256((signed / one["name"]).read_bytes()).hexdigest()}
    manifest = json.loads((signed / "manifest.json").read_text())
    assert list(manifest["files"]) == RELEASE
    assert all(manifest["files"][name]["size"] == (signed / name).stat().st_size for name in RELEASE)
    privacy = Release.load(signed).description.privacy
    assert statement["predicate"]["epsilon"] == privacy.epsilon == 1.0
    assert statement["predicate"]["rhoSpent"] == privacy.rho_spent


def test_signing_adds_two_files_and_touches_nothing(
    plain: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, times = tree(plain), {path: path.stat().st_mtime_ns for path in plain.iterdir()}
    (plain / "release.json").chmod(0o640)

    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            sign(plain, keys[0])
    assert tree(plain) == before
    sign(plain, keys[0])
    after = tree(plain)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"manifest.json", "attestation.json"}
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert stat.S_IMODE((plain / "attestation.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("change", ["edited", "removed", "added"])
def test_the_ledgers_of_replaced_releases_are_signed(change: str, plain: Path, keys: tuple[Path, Path]) -> None:
    path = plain / "replaced.json"
    if change != "added":
        path.write_text("[]\n")
    sign(plain, keys[0])
    assert failed(verify(plain, keys[1])) == set()
    if change == "removed":
        path.unlink()
    else:
        path.write_text("[1]\n")
    assert {"manifest", "signature"} <= failed(verify(plain, keys[1]))


def test_a_signature_is_replaced_only_by_force(signed: Path, tmp_path: Path) -> None:
    other = make_keys(tmp_path / "other.pem")
    before = tree(signed)
    with pytest.raises(InputError, match="release must not be signed already"):
        sign(signed, other[0])
    assert tree(signed) == before
    sign(signed, other[0], force=True)
    assert failed(verify(signed, other[1])) == set()


@pytest.mark.parametrize("name", RELEASE)
def test_a_release_that_is_not_whole_is_not_signed(name: str, plain: Path, keys: tuple[Path, Path]) -> None:
    (plain / name).unlink()
    before = tree(plain)
    with pytest.raises(InputError, match=rf"release must pass its checks to be signed \(files: missing: {name}\)"):
        sign(plain, keys[0])
    assert tree(plain) == before


def test_only_complete_releases_are_signed(plain: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    (plain / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"not part of a release: notes\.txt"):
        sign(plain, keys[0])
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "none", tmp_path / "plain" / "notes.txt"):
        with pytest.raises(InputError, match="release must"):
            sign(folder, keys[0])
    assert list((tmp_path / "empty").iterdir()) == []


# --- tampering


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the description."""
    path = folder / "release.json"
    spec = json.loads(path.read_text())
    change(spec)
    path.write_text(json.dumps(spec))


def rewrite(path: Path, **changes: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change some arrays of a file."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found}
    np.savez(path, **(arrays | {name: change(arrays[name]) for name, change in changes.items()}))


def settle(privacy: dict[str, Any]) -> None:
    """Make the figures agree with the ledger again, as a careful forger would."""
    total = sum(Fraction(entry["rho"]) for entry in privacy["ledger"])
    privacy["rho_spent"] = float(total)
    if Fraction(privacy["rho_spent"]) < total:
        privacy["rho_spent"] = float(np.nextafter(privacy["rho_spent"], np.inf))
    kinds: dict[str, list[float]] = {}
    for entry in privacy["ledger"]:
        kinds.setdefault(entry["mechanism"], []).append(entry["rho"])
    head = privacy["statement"].split("\n")[0]
    lines = [f"  {len(rhos):,} x {kind}: {sum(rhos):.6g}" for kind, rhos in kinds.items()]
    budget = f"Budget {privacy['rho']:.6g} zCDP (rho), spent {privacy['rho_spent']:.6g}:"
    privacy["statement"] = "\n".join([head, budget, *lines])


def settled(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def both(spec: dict[str, Any]) -> None:
        change(spec)
        settle(spec["privacy"])

    return both


def drop_charge(spec: dict[str, Any]) -> None:
    del spec["privacy"]["ledger"][1]


def set_privacy(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda spec: spec["privacy"].update(values)


def smaller_promise(spec: dict[str, Any]) -> None:
    privacy = spec["privacy"]
    privacy["epsilon"] = 0.5
    privacy["statement"] = privacy["statement"].replace("(1, ", "(0.5, ")


def underpaid(spec: dict[str, Any]) -> None:
    spec["privacy"]["ledger"][1]["rho"] *= 0.5


def halved_selection(spec: dict[str, Any]) -> None:
    """A selection that claims half of the sensitivity, and half of the scale with it."""
    entry = next(one for one in spec["privacy"]["ledger"] if one["label"] == "selection")
    entry["sensitivity"], entry["scale"] = entry["sensitivity"] / 2, entry["scale"] / 2


def insensitive(spec: dict[str, Any]) -> None:
    """A measurement of a marginal that claims the sensitivity of a single query."""
    entry = spec["privacy"]["ledger"][1]
    assert entry["sensitivity"] == pytest.approx(2**0.5)
    entry["sensitivity"] = 1.0


def overspent(spec: dict[str, Any]) -> None:
    ledger = spec["privacy"]["ledger"]
    ledger.append(dict(ledger[1]))


def seeded(spec: dict[str, Any]) -> None:
    spec["privacy"]["noise"] = "INSECURE seeded noise (seed 1): NOT PRIVATE, for experiments only"


def gaussian(spec: dict[str, Any]) -> None:
    spec["privacy"]["accounting"] = "Gaussian"


def other_relation(spec: dict[str, Any]) -> None:
    privacy = spec["privacy"]
    privacy["relation"] = "add-remove"
    privacy["statement"] = privacy["statement"].replace("relation replace", "relation add-remove")


DESCRIBED: list[tuple[str, Callable[[dict[str, Any]], None], set[str]]] = [
    ("a removed charge", drop_charge, {"ledger sum", "transcript"}),
    ("a removed charge, settled", settled(drop_charge), {"transcript"}),
    ("a smaller epsilon", set_privacy(epsilon=0.5), {"budget", "statement"}),
    ("a smaller epsilon, settled", smaller_promise, {"budget"}),
    ("a larger epsilon", set_privacy(epsilon=2.0), {"budget", "statement"}),
    ("a smaller delta", set_privacy(delta=1e-9), {"budget", "statement"}),
    ("a larger rho", settled(set_privacy(rho=1.0)), {"budget", "number of rows"}),
    ("less spent", set_privacy(rho_spent=0.001), {"ledger sum"}),
    ("a charge that is too small", settled(underpaid), {"charges"}),
    ("a wrong sensitivity", insensitive, {"sensitivities"}),
    ("a wrong sensitivity of a selection", halved_selection, {"sensitivities"}),
    ("a charge too many", settled(overspent), {"ledger sum", "transcript"}),
    ("another accounting", gaussian, {"budget"}),
    ("an unknown accounting", set_privacy(accounting="none"), {"budget"}),
    ("another relation", other_relation, {"statement", "number of rows"}),
    ("an unknown relation", set_privacy(relation="none"), {"description"}),
    ("another statement", set_privacy(statement="(0.1, 1e-9)-differential privacy"), {"statement"}),
    ("an empty statement", set_privacy(statement=""), {"statement"}),
    ("seeded noise", seeded, {"noise"}),
    ("unknown noise", set_privacy(noise="dice"), {"noise"}),
    ("not private", set_privacy(private=False), {"noise"}),
    ("an empty ledger", set_privacy(ledger=[]), {"ledger sum", "transcript"}),
    ("another number of rows", lambda spec: spec.update(total=301), {"statement"}),
    ("another number of synthetic rows", lambda spec: spec.update(rows=301), {"tables"}),
    ("another rho of the rounds", lambda spec: spec.update(rho=0.01), {"number of rows"}),
    ("noise on a public number", lambda spec: spec.update(total_sigma=3.0), {"number of rows"}),
    ("another size of the workload", lambda spec: spec["workload"].update(size=3), {"description"}),
    ("a negative seed", lambda spec: spec.update(seed=-1), {"description"}),
    ("another format", lambda spec: spec.update(format=3), {"description"}),
    ("a format that is not a number", lambda spec: spec.update(format=[2]), {"description"}),
]


@pytest.mark.parametrize(("change", "caught"), [case[1:] for case in DESCRIBED], ids=[case[0] for case in DESCRIBED])
def test_a_changed_description_is_caught(
    change: Callable[[dict[str, Any]], None], caught: set[str], plain: Path, signed: Path, keys: tuple[Path, Path]
) -> None:
    edit(plain, change)
    assert failed(verify(plain)) == caught
    edit(signed, change)
    report = verify(signed, keys[1])
    assert {"manifest", "signature"} <= failed(report)


def test_another_seed_is_caught_by_the_replay(plain: Path) -> None:
    edit(plain, lambda spec: spec.update(seed=6))
    assert failed(verify(plain)) == set()
    assert "replayed rows" in failed(verify(plain, replay=True))


def test_other_settings_are_caught_by_the_replay(plain: Path) -> None:
    edit(plain, lambda spec: spec["method"]["settings"].update(rounds=2))
    report = verify(plain, replay=True)
    assert failed(report) == {"replayed model"}
    edit(plain, lambda spec: spec["method"].update(name="mine"))
    assert "must be a method of this version, got 'mine'" in verify(plain, replay=True)["replayed model"].reason


def shifted(at: int, by: float) -> Callable[[np.ndarray], np.ndarray]:
    def shift(values: np.ndarray) -> np.ndarray:
        changed = values.copy()
        changed.flat[at] += by
        return changed

    return shift


TRANSCRIPTS: list[tuple[str, dict[str, Callable[[np.ndarray], np.ndarray]], set[str]]] = [
    ("another sigma", {"sigmas": lambda x: x * 0.9}, {"transcript"}),
    ("another sigma in the last digits", {"sigmas": lambda x: np.nextafter(x, 0)}, {"transcript"}),
    ("another count", {"counts": shifted(0, 4000)}, {"replayed model"}),
    ("a count less", {"counts": lambda x: x[:-1]}, {"transcript"}),
    ("counts that are no whole numbers", {"counts": lambda x: x + 0.5}, {"transcript"}),
    ("no picks", {"picks": lambda x: x[:0]}, {"transcript"}),
    ("picks that cost nothing", {"selected": np.zeros_like}, {"transcript"}),
]


@pytest.mark.parametrize(("changes", "caught"), [case[1:] for case in TRANSCRIPTS], ids=[c[0] for c in TRANSCRIPTS])
def test_a_changed_transcript_is_caught(
    changes: dict[str, Callable[[np.ndarray], np.ndarray]], caught: set[str], plain: Path
) -> None:
    rewrite(plain / "transcript.npz", **changes)
    assert failed(verify(plain, replay=True)) == caught


def test_measurements_of_other_queries_are_caught(tmp_path: Path) -> None:
    """Two columns of the same size, each measured once: their results change places."""
    options: dict[str, Any] = {"method": "mwem", "workload": "marginals:1", "settings": {"rounds": 5}}
    folder = synthesize(people(), epsilon=1.0, **options).save(tmp_path / "r")
    assert verify(folder, replay=True).ok
    swap = {"sex": "owner", "owner": "sex"}

    def swapped(asked: np.ndarray) -> np.ndarray:
        queries = json.loads(str(asked))
        return np.array(
            json.dumps([one | {"attributes": [swap.get(a, a) for a in one["attributes"]]} for one in queries])
        )

    rewrite(folder / "transcript.npz", asked=swapped)
    assert failed(verify(folder)) == set()
    assert failed(verify(folder, replay=True)) == {"replayed model"}


def test_a_changed_model_is_caught(plain: Path) -> None:
    rewrite(plain / "model.npz", weights=shifted(0, 1e-3))
    report = verify(plain, replay=True)
    assert "replayed model" in failed(report)
    assert "parameters differ by up to 0.001" in report["replayed model"].reason
    rewrite(plain / "model.npz", weights=lambda x: x * np.nan)
    assert failed(verify(plain)) == {"model"}
    rewrite(plain / "model.npz", weights=lambda x: x[:1])
    assert failed(verify(plain)) == {"model"}


def test_a_model_that_is_nearly_the_same_is_told_from_the_same(plain: Path) -> None:
    rewrite(plain / "model.npz", weights=shifted(0, 1e-12))
    report = verify(plain, replay=True)
    assert failed(report) == set()
    assert "not bit for bit" in report["replayed model"].reason


def change_csv(folder: Path, line: int, old: str, new: str) -> None:
    path = folder / "synthetic.csv"
    lines = path.read_text().split("\n")
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    path.write_text("\n".join(lines))


def change_parquet(folder: Path, column: str, change: Callable[[list[Any]], list[Any]]) -> None:
    path = folder / "synthetic.parquet"
    table = parquet.read_table(path)
    place = table.column_names.index(column)
    values = pa.array(change(table.column(column).to_pylist()), table.schema.field(column).type)
    parquet.write_table(table.set_column(place, column, values), path)


def test_a_changed_row_is_caught(plain: Path) -> None:
    sex = Release.load(plain).table.codes[0]
    old, new = ("f", "m") if sex[4] == 0 else ("m", "f")
    change_csv(plain, 5, f'"{old}"' if f'"{old}"' in (plain / "synthetic.csv").read_text() else old, new)
    report = verify(plain)
    assert failed(report) == {"tables"}
    assert "row 5, column 'sex'" in report["tables"].reason
    change_parquet(plain, "sex", lambda values: [*values[:4], new, *values[5:]])
    report = verify(plain, replay=True)
    assert failed(report) == {"replayed rows"}
    assert "row 5, column 'sex'" in report["replayed rows"].reason


def test_another_number_in_the_same_bin_is_caught(plain: Path) -> None:
    ages = parquet.read_table(plain / "synthetic.parquet").column("age").to_pylist()
    row = next(n for n, age in enumerate(ages) if 18 < age < 60)
    change_parquet(plain, "age", lambda values: [*values[:row], values[row] + 1, *values[row + 1 :]])
    report = verify(plain)
    assert failed(report) == {"tables"}
    assert "a cell of column 'age'" in report["tables"].reason
    change_csv(plain, row + 1, f",{ages[row]},", f",{ages[row] + 1},")
    assert failed(verify(plain)) == set()
    assert failed(verify(plain, replay=True)) == {"replayed rows"}


def test_rows_that_are_added_dropped_or_swapped_are_caught(plain: Path) -> None:
    path = plain / "synthetic.parquet"
    table = parquet.read_table(path)
    for other in (table.slice(1), pa.concat_tables([table, table.slice(0, 1)]), table.take(list(range(300))[::-1])):
        parquet.write_table(other, path)
        assert failed(verify(plain)) == {"tables"}
    parquet.write_table(table.select(table.column_names[::-1]), path)
    assert failed(verify(plain)) == {"tables"}


@pytest.mark.parametrize("name", RELEASE)
def test_a_changed_file_of_a_signed_release_is_caught(name: str, signed: Path, keys: tuple[Path, Path]) -> None:
    with (signed / name).open("ab") as file:
        file.write(b"\n")
    report = verify(signed, keys[1])
    assert {"manifest", "signature"} <= failed(report)
    assert report["manifest"].reason == f"not as in the manifest: {name}"
    assert report["signature"].reason == f"changed since it was signed: {name}"


@pytest.mark.parametrize(
    ("one", "two", "caught"),
    [
        ("model.npz", "transcript.npz", {"model", "transcript"}),
        ("synthetic.csv", "synthetic.parquet", {"tables"}),
        ("release.json", "synthetic.csv", {"description"}),
    ],
)
def test_swapped_files_are_caught(one: str, two: str, caught: set[str], plain: Path, signed: Path) -> None:
    for folder in (plain, signed):
        (folder / one).rename(folder / "x")
        (folder / two).rename(folder / one)
        (folder / "x").rename(folder / two)
    assert failed(verify(plain)) == caught
    assert failed(verify(signed)) >= caught | {"manifest"}


def test_files_of_another_release_are_caught(signed: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "mwem", "workload": "marginals:2", "seed": 5, "settings": {"rounds": 3}}
    other = synthesize(people(), epsilon=1.0, **options).save(tmp_path / "other")
    kept = (signed / "model.npz").read_bytes()
    shutil.copy(other / "model.npz", signed / "model.npz")
    assert failed(verify(signed, replay=True)) == {"manifest", "signature", "replayed model", "replayed rows"}
    (signed / "model.npz").write_bytes(kept)
    assert failed(verify(signed, replay=True)) == set()


def test_another_manifest_is_caught(signed: Path, keys: tuple[Path, Path]) -> None:
    path = signed / "manifest.json"
    manifest = path.read_bytes()
    path.write_bytes(manifest + b"\n")
    report = verify(signed, keys[1])
    assert failed(report) == {"manifest", "signature"}
    assert report["manifest"].reason == "the manifest was edited"
    assert report["signature"].reason == "changed since it was signed: manifest.json"
    spec = json.loads(manifest)
    spec["files"]["model.npz"]["sha256"] = "0" * 64
    path.write_text(json.dumps(spec))
    assert failed(verify(signed, keys[1])) == {"manifest", "signature"}
    path.unlink()
    assert failed(verify(signed, keys[1])) == {"signature"}


def test_a_signature_by_another_key_is_caught(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    other = make_keys(tmp_path / "other.pem")
    report = verify(signed, other[1])
    assert failed(report) == {"signature"}
    assert report["signature"].reason == "the signature does not fit the public key that was given"
    sign(signed, other[0], force=True)
    assert failed(verify(signed)) == set()  # whole, but by whom?
    assert failed(verify(signed, keys[1])) == {"signature"}


def test_a_public_key_asks_for_a_signature(plain: Path, signed: Path, keys: tuple[Path, Path]) -> None:
    assert statuses(verify(plain))["signature"] == "skipped"
    report = verify(plain, keys[1])
    assert report["signature"].reason == "a public key was given, but there is no attestation.json"
    assert not report.ok
    (signed / "attestation.json").unlink()
    assert failed(verify(signed, keys[1])) == {"signature"}


def sealed_again(key: Path, **changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The statement with some entries changed, signed by the same key."""

    def again(envelope: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(json.loads(base64.b64decode(envelope["payload"])) | changes).encode()
        signature = private_key(key).sign(pae(PAYLOAD_TYPE, body))
        text = base64.b64encode(signature).decode()
        first = envelope["signatures"][0] | {"sig": text}
        return envelope | {"payload": base64.b64encode(body).decode(), "signatures": [first]}

    return again


def another_epsilon(envelope: dict[str, Any]) -> dict[str, Any]:
    body = base64.b64decode(envelope["payload"])
    assert b'"epsilon":1.0' in body
    return envelope | {"payload": base64.b64encode(body.replace(b'"epsilon":1.0', b'"epsilon":0.1')).decode()}


ENVELOPES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another payload": another_epsilon,
    "no payload": lambda envelope: envelope | {"payload": None},
    "a payload that is not base64": lambda envelope: envelope | {"payload": "?"},
    "another type": lambda envelope: envelope | {"payloadType": "application/json"},
    "no signature": lambda envelope: envelope | {"signatures": []},
    "a hundred signatures": lambda envelope: envelope | {"signatures": envelope["signatures"] * 100},
    "signatures of another kind": lambda envelope: envelope | {"signatures": ["x", None]},
    "an empty signature": lambda envelope: envelope | {"signatures": [{"sig": ""}]},
    "another name of the key": lambda e: e | {"signatures": [e["signatures"][0] | {"keyid": "0" * 64}]},
    "a list": lambda envelope: [envelope],
}


@pytest.mark.parametrize("given", [False, True], ids=["its own key", "a given key"])
@pytest.mark.parametrize("change", ENVELOPES.values(), ids=ENVELOPES)
def test_a_changed_envelope_is_caught(
    change: Callable[[dict[str, Any]], Any], given: bool, signed: Path, keys: tuple[Path, Path]
) -> None:
    path = signed / "attestation.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    assert failed(verify(signed, keys[1] if given else None)) == {"signature"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"predicateType": "x"}, "not about the privacy of a release"),
        ({"_type": "x"}, "not an in-toto statement"),
        ({"subject": []}, "changed since it was signed"),
        ({"subject": None}, "changed since it was signed"),
        ({"predicate": {}}, "the signed private is not that of release.json"),
        ({"predicate": None}, "the signed private is not that of release.json"),
    ],
)
def test_a_statement_about_something_else_is_refused_whoever_signed_it(
    changes: dict[str, Any], reason: str, signed: Path, keys: tuple[Path, Path]
) -> None:
    path = signed / "attestation.json"
    path.write_text(json.dumps(sealed_again(keys[0], **changes)(json.loads(path.read_text()))))
    report = verify(signed, keys[1])
    assert failed(report) == {"signature"}
    assert reason in report["signature"].reason


def test_a_second_signature_does_no_harm(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """An envelope may hold several; a given key needs one of them, without one all must fit."""
    path, other = signed / "attestation.json", make_keys(tmp_path / "other.pem")
    envelope = json.loads(path.read_text())
    body = base64.b64decode(envelope["payload"])
    key = private_key(other[0])
    raw = key.public_key().public_bytes_raw()
    more = {name: base64.b64encode(value).decode() for name, value in
            (("sig", key.sign(pae(PAYLOAD_TYPE, body))), ("publicKey", raw))}  # fmt: skip
    path.write_text(json.dumps(envelope | {"signatures": [more, *envelope["signatures"]], "comment": "x"}))
    assert all(verify(signed, one).ok for one in (None, keys[1], other[1]))
    path.write_text(json.dumps(envelope | {"signatures": [more | {"sig": "AAAA"}, *envelope["signatures"]]}))
    assert [verify(signed, one).ok for one in (None, keys[1], other[1])] == [False, True, False]


# --- hostile folders


def test_links_are_not_followed(plain: Path, tmp_path: Path) -> None:
    for name in RELEASE:
        outside = tmp_path / f"outside-{name}"
        (plain / name).rename(outside)
        (plain / name).symlink_to(outside)
        report = verify(plain)
        assert "files" in failed(report)
        assert f"{name} is a link, which is not followed" in {one.reason for one in report.checks}
        assert len(failed(report)) >= 2
        (plain / name).unlink()
        outside.rename(plain / name)
    for name in ("manifest.json", "attestation.json"):
        (plain / name).symlink_to(plain / "release.json")
        assert {"files"} < failed(verify(plain))
        (plain / name).unlink()
    assert verify(plain).ok


def test_pipes_and_folders_are_not_read(plain: Path) -> None:
    """A pipe without a writer would wait for ever."""
    for name, checks in (("release.json", {"files", "description"}), ("synthetic.csv", {"files", "tables"})):
        content = (plain / name).read_bytes()
        (plain / name).unlink()
        os.mkfifo(plain / name)
        assert failed(verify(plain)) == checks
        (plain / name).unlink()
        (plain / name).mkdir()
        assert failed(verify(plain)) == checks
        (plain / name).rmdir()
        (plain / name).write_bytes(content)


def test_unknown_files_are_reported(plain: Path) -> None:
    for n in range(7):
        (plain / f"extra{n}\x1b[2J").write_text("x")
    report = verify(plain)
    assert failed(report) == {"files"}
    assert report["files"].reason.startswith("7 not part of a release: extra0?[2J, ")
    assert report["files"].reason.isprintable()


def test_arrays_that_grow_are_not_read(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MOST_ARRAYS", 100_000)
    np.savez_compressed(plain / "model.npz", weights=np.zeros(1_000_000))
    assert (plain / "model.npz").stat().st_size < 20_000
    report = verify(plain)
    assert failed(report) == {"model"}
    assert "take 8 MB of memory, more than the 100 kB that are read" in report["model"].reason


def test_arrays_of_objects_and_doubled_names_are_not_read(plain: Path) -> None:
    content = (plain / "model.npz").read_bytes()
    np.savez(plain / "model.npz", weights=np.array([print], dtype=object))
    assert failed(verify(plain)) == {"model"}
    (plain / "model.npz").write_bytes(content)
    with np.load(io.BytesIO(content)) as arrays:
        array = io.BytesIO()
        np.save(array, arrays["weights"])
    with zipfile.ZipFile(plain / "model.npz", "w") as archive:
        archive.writestr("weights.npy", array.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("weights.npy", array.getvalue())
    report = verify(plain)
    assert failed(report) == {"model"}
    assert "two arrays of the same name" in report["model"].reason


def test_texts_that_grow_are_not_decoded(plain: Path) -> None:
    """A list of one long text and many positions in it: small as a file, large as a column."""
    long = "x" * 200_000
    change_parquet(plain, "sex", lambda values: [long] * len(values))
    assert (plain / "synthetic.parquet").stat().st_size < 1_000_000
    report = verify(plain)
    assert failed(report) == {"tables"}
    assert report["tables"].reason == "synthetic.parquet has longer texts than the schema lists"


BAD_JSON = {
    "empty": b"",
    "binary": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "deep tables": b'{"a":' * 50_000,
    "a list": b"[]",
    "nothing in it": b"{}",
    "not a number": b'{"format": NaN}',
    "twice": b'{"format": 2, "format": 1}',
    "long number": b'{"format": 1' + b"0" * 6000 + b"}",
    "lone surrogate": b'{"format": "\\ud800"}',
}


@pytest.mark.parametrize("name", ["release.json", "attestation.json", "manifest.json"])
@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_is_a_failed_check(name: str, content: bytes, signed: Path, keys: tuple[Path, Path]) -> None:
    (signed / name).write_bytes(content)
    report = verify(signed, keys[1], replay=True)
    wanted = {"release.json": "description", "attestation.json": "signature", "manifest.json": "manifest"}[name]
    assert wanted in failed(report)
    assert all(one.reason.isprintable() and len(one.reason) <= 300 for one in report.checks)
    json.dumps(report.to_dict())


def test_large_files_are_not_read(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (plain / "release.json").open("r+b") as file:
        file.truncate(1 << 30)  # takes no space
    report = verify(plain)
    assert "description" in failed(report)
    assert "more than the 67.1 MB that are read" in report["description"].reason


def test_queries_that_would_take_for_ever_are_refused(plain: Path) -> None:
    values = [str(n) for n in range(6_000)]
    product = {"kind": "product", "attributes": ["sex"], "intervals": [[[0, 5]]], "of": {}}  # which means nothing here

    def change(spec: dict[str, Any]) -> None:
        spec["schema"]["column"][0]["values"] = values
        spec["workload"]["queries"].append(product)

    edit(plain, change)
    report = verify(plain)
    assert "description" in failed(report)
    assert "too many intervals" in report["description"].reason


@pytest.mark.parametrize(
    ("queries", "times", "reason"),
    [
        ({"kind": "halfspaces", "attributes": ["sex"], "weights": [[9000]], "intervals": [[0, 5]] * 5_000}, 1, "many"),
        ({"kind": "predicates", "formulas": [{"attributes": ["sex"], "table": ""}] * 900}, 12, "too many conditions"),
        ({"kind": "predicates", "formulas": [{"attributes": ["sex"], "table": ""}]}, 1, "a bit for each combination"),
    ],
)
def test_halfspaces_and_conditions_that_would_take_for_ever_are_refused(
    queries: dict[str, Any], times: int, reason: str, plain: Path
) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["schema"]["column"][0]["values"] = [str(n) for n in range(100_000)]
        spec["workload"]["queries"] = [queries] * times

    edit(plain, change)
    report = verify(plain)
    assert "description" in failed(report)
    assert reason in report["description"].reason


def test_no_method_is_run_on_facts_that_make_no_sense(plain: Path) -> None:
    """A budget below 0 cannot be split, and there is no share of 0 rows."""
    for entry, value in (("rho", -1.0), ("rho", 0.0), ("total", 0), ("total", -5)):
        original = (plain / "release.json").read_text()
        edit(plain, lambda spec, entry=entry, value=value: spec.update({entry: value}))  # type: ignore[misc]
        report = verify(plain, replay=True)
        assert "number of rows" in failed(report)
        assert report["replayed model"].status == "skipped"
        (plain / "release.json").write_text(original)
    edit(plain, lambda spec: (spec.update(rho=-1.0), spec["privacy"].update(rho=-1.0)))
    report = verify(plain, replay=True)
    assert "ledger sum" in failed(report)
    assert report["replayed model"].status == "skipped"


ODD = [None, -1, 0, 1e308, -0.0, 5e-324, "x", "", [], {}, True, 10**400, 2**63, 1.5, [[]], {"kind": "none"}]


def test_whatever_is_damaged_is_a_line_and_never_a_crash(made: Path, signed: Path, keys: tuple[Path, Path]) -> None:
    """Seeded damage of every file: the signature catches all of it, and the other checks survive it."""
    rng = np.random.default_rng(0)
    whole = {name: (signed / name).read_bytes() for name in SIGNED}
    for n in range(240):
        name = SIGNED[n % len(SIGNED)]
        content = bytearray(whole[name])
        kind = rng.integers(3)
        if kind == 0:
            content = content[: rng.integers(len(content))]
        elif kind == 1:
            content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        else:
            for _ in range(20):
                content[rng.integers(len(content))] = rng.integers(256)
        (signed / name).write_bytes(content)
        report = verify(signed, keys[1], replay=n % 5 == 0)
        if name != "attestation.json":  # an envelope may hold more than what is signed
            assert ("signature" in failed(report)) == (bytes(content) != whole[name]), name
        (signed / name).write_bytes(whole[name])
    assert verify(signed, keys[1]).ok


def test_odd_entries_of_the_description_never_crash(plain: Path) -> None:
    rng = np.random.default_rng(1)
    original = (plain / "release.json").read_text()
    found = 0
    for n in range(300):
        spec = node = json.loads(original)
        while isinstance(node, dict | list) and node:
            parent = node
            key = list(node)[rng.integers(len(node))] if isinstance(node, dict) else int(rng.integers(len(node)))
            node = node[key]
            if rng.random() < 0.2:
                break
        parent[key] = ODD[n % len(ODD)]
        (plain / "release.json").write_text(json.dumps(spec))
        report = verify(plain, replay=n % 4 == 0)
        assert all(one.reason for one in report.checks)
        found += not report.ok
    assert found > 200


def test_lines_are_printable_and_bounded() -> None:
    assert one_line("a\n b\x1b[31m" + "x" * 10_000) == "a b?[31m" + "x" * 289 + "..."


# --- public tables


def test_the_replay_needs_the_public_table(tmp_path: Path) -> None:
    method = METHODS["pmw_pub"]
    assert method.public is Public.NEEDED
    folder = make(method, Grouping.MARGINAL, noise_seed=None).run().save(tmp_path / "r")
    assert failed(verify(folder)) == set()
    report = verify(folder, replay=True)
    assert failed(report) == {"replayed model"}
    assert "give it with --public FILE" in report["replayed model"].reason
    other = small_table(300, seed=4)
    assert "got another table" in verify(folder, replay=True, public=other)["replayed model"].reason
    assert verify(folder, replay=True, public=public_table(method)).ok


# --- keys


def test_keys_are_made_once_and_for_their_owner(tmp_path: Path) -> None:
    private, public = make_keys(tmp_path / "key.pem")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert public == tmp_path / "key.pem.pub"
    before = tree(tmp_path)
    with pytest.raises(InputError, match="key must not exist already"):
        make_keys(private)
    private.unlink()
    with pytest.raises(InputError, match="key must not exist already"):
        make_keys(private)  # the public key is there
    assert set(tree(tmp_path)) == {"key.pem.pub"} < set(before)
    with pytest.raises(InputError, match="must be a new file in a folder that can be written to"):
        make_keys(tmp_path / "none" / "key.pem")
    assert private_key(make_keys(tmp_path / "second.pem")[0]) != public_key(public)


def test_a_key_that_others_can_read_is_refused(plain: Path, tmp_path: Path) -> None:
    private, _ = make_keys(tmp_path / "key.pem")
    private.chmod(0o640)
    with pytest.raises(InputError, match=r"must be readable by its owner alone \(its mode is 0640\)"):
        sign(plain, private)
    assert sorted(path.name for path in plain.iterdir()) == RELEASE


def test_keys_with_passwords(plain: Path, tmp_path: Path) -> None:
    private, public = make_keys(tmp_path / "key.pem", b"correct horse")
    assert b"ENCRYPTED" in private.read_bytes()
    with pytest.raises(InputError, match="must be opened with its password"):
        sign(plain, private)
    with pytest.raises(InputError, match="must be a private key in PEM form, with this password"):
        sign(plain, private, b"battery staple")
    open_key, _ = make_keys(tmp_path / "open.pem")
    with pytest.raises(InputError, match="must be opened without a password"):
        sign(plain, open_key, b"x")
    sign(plain, private, b"correct horse")
    assert verify(plain, public).ok


def test_files_that_are_no_keys_are_refused(plain: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    curve = ec.generate_private_key(ec.SECP256R1())
    other = tmp_path / "ec.pem"
    other.touch(0o600)
    other.write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "ec.pub").write_bytes(curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "text").touch(0o600)
    (tmp_path / "long").touch(0o600)
    (tmp_path / "long").write_bytes(b"x" * 100_000)
    for file, rule in (
        (other, "must be an Ed25519 key"), (tmp_path / "text", "must be a private key in PEM form"),
        (tmp_path / "none", "must be a file that can be read"), (tmp_path / "long", "must be a PEM file of one key"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"key {rule}"):
            sign(plain, file)
    for file, rule in (
        (tmp_path / "ec.pub", "must be an Ed25519 key"), (keys[0], "must be a public key in PEM form"),
        (tmp_path / "text", "must be a public key in PEM form"), (tmp_path, "must be a file that can be read"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"public_key {rule}"):
            verify(plain, file)


def test_without_the_package_a_sentence_says_so(
    plain: Path, signed: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    sentence = r"cryptography must be installed .* pip install 'pointillist\[sign\]'"
    for call in (lambda: sign(plain, keys[0]), lambda: verify(plain, keys[1]), lambda: make_keys("k")):
        with pytest.raises(InputError, match=sentence):
            call()
    assert verify(plain).ok  # nothing to check a signature of
    report = verify(signed)
    assert failed(report) == {"signature"}  # a signature that was not checked is no good news
    assert "pip install" in report["signature"].reason


# --- the command line


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """The three commands as the main command line registers them."""
    app = typer.Typer()
    for call in (cli_attest.keygen, cli_attest.sign, cli_attest.verify):
        app.command()(call)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PASSWORD, raising=False)

    def go(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(arguments))
        if isinstance(result.exception, PointillistError):
            return 2, str(result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.output

    return go


def test_the_commands(plain: Path, command: Callable[..., tuple[int, str]]) -> None:
    code, text = command("keygen", "key.pem")
    assert (code, "without a password" in text) == (0, True)
    code, text = command("sign", "plain", "--key", "key.pem")
    assert code == 0
    assert "signed plain with the key " in text
    code, text = command("verify", "plain", "--public-key", "key.pem.pub", "--replay")
    assert code == 0
    assert "verified: all 19 checks that apply to plain passed" in text
    words = [line.split()[0] for line in text.splitlines()]
    assert (words.count("ok"), words.count("skipped"), words[-1]) == (19, 2, "verified:")  # it has no replicates
    code, text = command("verify", "plain", "--json")
    found = json.loads(text)
    assert (code, found["ok"], found["private"], found["release"]) == (0, True, True, "plain")
    assert {one["status"] for one in found["checks"]} == {"ok", "skipped"}
    assert command("sign", "plain", "--key", "key.pem")[0] == 2
    assert command("sign", "plain", "--key", "key.pem", "--force")[0] == 0
    edit(plain, smaller_promise)
    code, text = command("verify", "plain")
    assert code == 2
    assert "NOT verified: 3 of 16 checks of plain failed" in text
    assert json.loads(command("verify", "plain", "--json")[1])["ok"] is False


def test_the_commands_refuse_in_a_sentence(plain: Path, command: Callable[..., tuple[int, str]]) -> None:
    assert command("verify", "none") == (
        2, "release must be an existing folder, got 'none'; give the folder that synth wrote."
    )  # fmt: skip
    assert "public must be given together with --replay" in command("verify", "plain", "--public", "x.csv")[1]
    assert command("sign", "plain", "--key", "none.pem")[0] == 2
    assert "password_file must be a file" in command("keygen", "k", "--password-file", "none")[1]
    Path("empty").touch()
    assert "password_file must hold a password" in command("keygen", "k", "--password-file", "empty")[1]
    assert not Path("k").exists()


def test_passwords_come_from_a_file_or_the_environment(
    plain: Path, command: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("secret").write_text("correct horse\n")
    assert "with a password" in command("keygen", "key.pem", "--password-file", "secret")[1]
    assert "must be opened with its password" in command("sign", "plain", "--key", "key.pem")[1]
    monkeypatch.setenv(PASSWORD, "correct horse")
    assert command("sign", "plain", "--key", "key.pem")[0] == 0
    assert command("verify", "plain", "--public-key", "key.pem.pub")[0] == 0


def test_the_command_is_loud_about_what_is_not_private(command: Callable[..., tuple[int, str]]) -> None:
    release = synthesize(people(), epsilon=1.0, method="mwem", workload="marginals:1", insecure_noise_seed=3)
    release.save("r")
    command("keygen", "key.pem")
    assert "NOT PRIVATE, and the signature says so" in command("sign", "r", "--key", "key.pem")[1]
    code, text = command("verify", "r", "--public-key", "key.pem.pub")
    assert code == 0
    assert "NOT PRIVATE: this release was made with seeded noise. Do not publish it." in text
    assert json.loads(command("verify", "r", "--json")[1])["private"] is False


def test_the_command_replays_with_a_public_table(command: Callable[..., tuple[int, str]]) -> None:
    method = METHODS["pmw_pub"]
    make(method, Grouping.MARGINAL, noise_seed=None).run().save("r")
    public = public_table(method)
    assert public is not None
    public.write("public.csv")
    assert command("verify", "r", "--replay")[0] == 2
    assert command("verify", "r", "--replay", "--public", "public.csv")[0] == 0
