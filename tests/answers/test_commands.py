"""`pointillist answer` and `pointillist replicate`, and what signatures say about replicates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.answers.small import small_release
from tests.command import Run

from pointillist import Release
from pointillist.attestation import make_keys, sign, verify


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release().save(tmp_path_factory.mktemp("bare") / "release")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release().replicate(3, progress=False).save(tmp_path_factory.mktemp("made") / "release")


def test_answers_are_printed(run: Run, folder: Path) -> None:
    result = run("answer", str(folder), 'age >= 65 and region == "N"')
    assert result.code == 0, result.err
    assert "share of age >= 65" in result.out
    assert "number of rows" in result.out
    assert "differentially private values only" in result.out


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (('smoker == "yes"', "--given", "age < 40"), ['share of smoker == "yes" given age < 40']),
        (("--mean", "age"), ["mean of age"]),
        (("--quantile", "age:0.5", 'region == "N"'), ['0.5 quantile of age given region == "N"']),
        (('smoker == "yes"', "--given", "age < 40", "--minus", "age >= 40"), [
            'share of smoker == "yes" given age < 40', 'share of smoker == "yes" given age >= 40',
            'share of smoker == "yes" given age < 40 - share of smoker == "yes" given age >= 40',
        ]),
        (("--mean", "age", 'region == "N"', "--over", 'region == "S"'), [
            'mean of age given region == "N"', 'mean of age given region == "S"',
            '(mean of age given region == "N") / (mean of age given region == "S")',
        ]),
    ],
    ids=str,
)  # fmt: skip
def test_answers_as_json(run: Run, folder: Path, options: tuple[str, ...], texts: list[str]) -> None:
    result = run("answer", str(folder), *options, "--level", "0.9", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert [one["text"] for one in found] == texts
    assert all(one["low"] <= one["estimate"] <= one["high"] and one["level"] == 0.9 for one in found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "where must be a condition"),
        (("agee >= 65",), "must be about columns of the release"),
        (("age >= 65", "--level", "95"), "level must be above 0 and below 1"),
        (("--mean", "region"), "must be a column of numbers"),
        (("--quantile", "age"), "must have the form COLUMN:SHARE"),
        (("--mean", "age", "--quantile", "age:0.5"), "must not be given together"),
        (("age >= 65", "--given", "age >= 40", "--mean", "age"), "must not be given with --mean"),
        (("age >= 65", "--minus", "age < 1", "--over", "age < 2"), "must not be given together with --minus"),
    ],
    ids=str,
)
def test_bad_questions_are_one_sentence(run: Run, folder: Path, options: tuple[str, ...], words: str) -> None:
    result = run("answer", str(folder), *options)
    assert result.code == 2
    assert words in result.err


def test_the_first_answer_makes_the_replicates_and_saves_them(run: Run, bare: Path) -> None:
    assert Release.load(bare).replicates is None
    first = run("answer", str(bare), "age >= 65", "--json")
    assert first.code == 0, first.err
    saved = Release.load(bare).replicates
    assert saved is not None
    assert len(saved) == 8
    before = (bare / "replicates.npz").stat().st_mtime_ns
    assert run("answer", str(bare), "age >= 65", "--json").out == first.out
    assert (bare / "replicates.npz").stat().st_mtime_ns == before
    result = run("replicate", str(bare), "--replicates", "2", "--seed", "3")
    assert result.code == 0, result.err
    assert "no budget was spent" in result.out
    again = Release.load(bare).replicates
    assert again is not None
    assert (len(again), again.seed) == (2, 3)


def test_a_signature_says_whether_replicates_are_signed(folder: Path, tmp_path: Path) -> None:
    key, _ = make_keys(tmp_path / "key.pem")
    content = (folder / "replicates.npz").read_bytes()
    sign(folder, key)
    assert verify(folder).ok
    assert "later" not in verify(folder)["signature"].reason
    (folder / "replicates.npz").write_bytes(content + b" ")
    assert verify(folder)["signature"].status == "failed"
    (folder / "replicates.npz").unlink()
    assert verify(folder)["signature"].status == "failed"
    sign(folder, key, force=True)
    (folder / "replicates.npz").write_bytes(content)
    report = verify(folder, replay=True)
    assert report.ok, [one for one in report.checks if one.status == "failed"]
    assert "replicates.npz was added later and is not signed" in report["signature"].reason
    assert "replicates.npz was added later and is not listed" in report["manifest"].reason
    assert report["replicates"].status == report["replayed replicate"].status == "ok"


def test_other_replicates_do_not_pass_the_replay(folder: Path) -> None:
    with np.load(folder / "replicates.npz") as found:
        arrays = dict(found)
    np.savez_compressed(folder / "replicates.npz", **arrays | {"seed": np.array(77)})
    assert verify(folder, replay=True)["replayed replicate"].status == "failed"
