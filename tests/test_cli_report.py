"""The command `pointillist report`: what it writes, and what it refuses without writing anything."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
import yaml
from tests.command import Run, tree

from pointillist.privacy.ledger import Entry
from pointillist.release import Release

ROWS = ["N,10,none", "N,12,none", "S,70,some", "W,30,some", ",40,none"] * 20
SCHEMA = """\
format = 1
reviewed = true

[[column]]
name = "region"
type = "categorical"
values = ["N", "S", "W"]
missing = true

[[column]]
name = "age"
type = "numeric"
edges = [0, 18, 65, 120]
integer = true

[[column]]
name = "job"
type = "categorical"
values = ["none", "some"]
"""
SYNTH = ("synth", "people.csv", "--epsilon", "3", "--method", "mwem", "--rounds", "2", "--workload", "marginals:2")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("\n".join(["region,age,job", *ROWS]) + "\n")
    (tmp_path / "people.schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def release(run: Run) -> Path:
    assert run(*SYNTH).code == 0
    return Path("release")


def test_a_page_and_a_record(run: Run, release: Path, charges: list[Entry]) -> None:
    before, spent = tree(release), len(charges)
    Path("about.toml").write_text('title = "People"\nholder = "Us"\n')
    Path("people.csv").unlink()
    made = run("report", "release", "--out", "r.html", "--about", "about.toml", "--registry", "r.yaml")
    assert made.code == 0, made.err
    assert "wrote r.html" in made.out
    assert "fill in the fields marked TODO: deployment.basic.data_curators.data_curator_type" in made.out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<h1>People</h1>" in page
    assert "checks passed. The release is not signed." in page
    assert yaml.safe_load(Path("r.yaml").read_text(encoding="utf-8"))["deployment"]["basic"]["name"] == "People"
    assert tree(release) == before
    assert len(charges) == spent
    assert run("verify", "release").code == 0


@pytest.mark.usefixtures("one_thread")
def test_a_page_for_the_holder_is_readable_by_its_owner_only(run: Run, release: Path) -> None:
    made = run("report", "release", "--holder", "people.csv", "--out", "h.html", "--target", "job")
    assert made.code == 0, made.err
    assert "NOT PRIVATE" in made.out
    assert stat.S_IMODE(Path("h.html").stat().st_mode) == 0o600
    assert "Predicting job" in Path("h.html").read_text(encoding="utf-8")


def test_seeded_releases_are_announced_and_not_registered(run: Run, home: Path) -> None:
    assert run(*SYNTH, "--insecure-noise-seed", "1").code == 0
    made = run("report", "release", "--out", "r.html")
    assert made.code == 0
    assert "NOT PRIVATE" in made.out
    assert "NOT PRIVATE: " in Path("r.html").read_text(encoding="utf-8")
    refused = run("report", "release", "--out", "s.html", "--registry", "r.yaml")
    assert refused.code == 2
    assert not Path("s.html").exists()
    assert not Path("r.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "release"), "out must be given"),
        (("report", "nowhere", "--out", "r.html"), "release must be a release folder"),
        (("report", "people.csv", "--out", "r.html"), "release must be a release folder"),
        (("report", "release", "--out", "r.txt"), "out must end in .html or .htm"),
        (("report", "release", "--registry", "r.json"), "registry must end in .yaml or .yml"),
        (("report", "release", "--out", "release/r.html"), "out must not lie in the folder of the release"),
        (("report", "release", "--out", "nowhere/r.html"), "out must be a file in an existing folder"),
        (("report", "release", "--out", "r.html", "--about", "none.toml"), "about must be an existing TOML file"),
        (("report", "release", "--out", "r.html", "--level", "95"), "level must be above 0 and below 1"),
        (("report", "release", "--out", "r.html", "--target", "job"), "target must be given together with --holder"),
        (("report", "release", "--registry", "r.yaml", "--holder", "people.csv"), "holder must be given together with"),
        (
            ("report", "release", "--out", "r.html", "--registry", "r.yaml", "--holder", "people.csv"),
            "registry must not",
        ),
        (("report", "release", "--out", "r.html", "--holder", "none.csv"), "holder must be an existing file"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(
    run: Run, release: Path, arguments: tuple[str, ...], words: str
) -> None:
    before = tree(Path())
    refused = run(*arguments)
    assert refused.code == 2
    assert words in refused.err
    assert refused.err.count("\n") == 1
    assert tree(Path()) == before


def test_existing_files_are_replaced_by_force_only(run: Run, release: Path) -> None:
    Path("r.html").write_text("mine")
    refused = run("report", "release", "--out", "r.html")
    assert refused.code == 2
    assert "out must not exist already" in refused.err
    assert Path("r.html").read_text() == "mine"
    assert run("report", "release", "--out", "r.html", "--force").code == 0
    assert Path("r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can write")
def test_a_folder_that_cannot_be_written_is_refused(run: Run, release: Path) -> None:
    refused = run("report", "release", "--out", "/proc/self/r.html")
    assert refused.code == 2
    assert "must be a file that can be written" in refused.err


def test_a_release_that_was_changed_gets_no_page(run: Run, release: Path) -> None:
    spec = json.loads((release / "release.json").read_text(encoding="utf-8"))
    spec["privacy"]["epsilon"] = 0.1
    (release / "release.json").write_text(json.dumps(spec), encoding="utf-8")
    refused = run("report", "release", "--out", "r.html", "--registry", "r.yaml")
    assert refused.code == 2
    assert "release must pass the checks of `pointillist verify`" in refused.err
    assert not Path("r.html").exists()
    assert not Path("r.yaml").exists()


def test_a_release_without_a_model_gets_no_page(run: Run, release: Path) -> None:
    shutil.copytree(release, "broken")
    Path("broken/model.npz").unlink()
    refused = run("report", "broken", "--out", "r.html")
    assert refused.code == 2
    assert "must be a release folder with model.npz in it" in refused.err
    assert Release.load("release").description.rows == 100
