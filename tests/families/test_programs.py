"""Compiled programs that are kept for the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pointillist.families import programs

RUN = """
import json, sys
import jax, numpy as np
from pointillist.data.domain import Domain
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.queries.kway import all_kway

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
domain = Domain(tuple("abc"), (3, 4, 5))
family = Relaxed(SoftmaxRows(domain, 20))
answers = family.answers(family.init(np.random.default_rng(0)), all_kway(domain, 2).queries)
print(json.dumps([hits.count("/jax/compilation_cache/cache_hits"), answers.tolist()]))
"""


def run(folder: str) -> tuple[int, list[float]]:
    """The hits and the answers of a fresh process, with warnings as errors."""
    import json

    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    env = kept | {"POINTILLIST_CACHE": folder}
    code = f"from pointillist.families import programs\nprograms.LEAST_SECONDS = 0.0\n{RUN}"
    done = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], capture_output=True, env=env)
    assert done.returncode == 0, done.stderr.decode()
    hits, answers = json.loads(done.stdout)
    return hits, answers


def test_a_second_process_finds_programs_and_damage_is_no_error(tmp_path: Path) -> None:
    first, answers = run(str(tmp_path / "cache"))
    assert first == 0
    (folder,) = (tmp_path / "cache" / "programs").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    entries = list(folder.glob("*-cache"))
    assert entries
    second, same = run(str(tmp_path / "cache"))
    assert second > 0
    assert same == answers
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:100])
    damaged, same = run(str(tmp_path / "cache"))
    assert damaged == 0
    assert same == answers


def test_nothing_is_kept_if_it_is_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("")[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "programs" / "machine"
    assert programs._own(folder)
    folder.chmod(mode)
    assert not programs._own(folder)
    folder.chmod(0o700)
    folder.parent.chmod(mode)
    assert not programs._own(folder)


def test_links_files_and_other_peoples_folders_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "programs").mkdir(parents=True, mode=0o700)
    (tmp_path / "target").mkdir()
    (tmp_path / "a" / "programs" / "machine").symlink_to(tmp_path / "target")
    assert not programs._own(tmp_path / "a" / "programs" / "machine")
    (tmp_path / "file").write_text("x")
    assert not programs._own(tmp_path / "file" / "programs" / "machine")
    assert programs._own(tmp_path / "b" / "programs" / "machine")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not programs._own(tmp_path / "b" / "programs" / "machine")


def test_what_was_not_used_for_the_longest_time_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_BYTES", 250)
    for age in range(4):
        path = tmp_path / f"{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    programs._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}
    programs._prune(tmp_path / "nowhere")
