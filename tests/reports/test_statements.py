"""What the holder states: read from TOML, refused where it is anything else."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from pointillist import InputError
from pointillist.reports import Statements


def test_statements_are_read(tmp_path: Path) -> None:
    file = tmp_path / "about.toml"
    file.write_text('title = " Town "\npublished = 2026-01-31\nauthors = ["A", "B"]\nholder_type = "Government"\n')
    found = Statements.load(file)
    assert (found.title, found.published, found.authors) == ("Town", "2026-01-31", ("A", "B"))
    assert found.purpose == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("titel = 'x'", "must only have the keys title, .*did you mean 'title'"),
        ("title = 3", "about: title must be a text, got 3; write title ="),
        ("title = ", "must be a TOML file"),
        ("authors = 'me'", "about: authors must be a list of names"),
        ("authors = [3]", "about: authors must be a text"),
        ("published = '31.1.2026'", "about: published must be a date such as 2026-01-31"),
        ("published = 2026-01-31T10:00:00", "about: published must be a text"),
        ("holder_type = 'Goverment'", "about: holder_type must be one of .* did you mean 'Government'"),
        (f"title = '{'x' * 30_000}'", "about: title must have at most 20,000 letters"),
        ("\udcff", "must be a TOML file"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "about.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words) as found:
        Statements.load(file)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 700


def test_large_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="about must be an existing TOML file"):
        Statements.load(tmp_path / "none.toml")
    (tmp_path / "large.toml").write_text("#" * (1 << 20) + "\n")
    with pytest.raises(InputError, match="about must be a file of 1 MiB at most"):
        Statements.load(tmp_path / "large.toml")


def test_the_example_of_the_page_has_every_key(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "about.toml").write_text(example, encoding="utf-8")
    found = Statements.load(tmp_path / "about.toml")
    assert all(getattr(found, one.name) for one in fields(Statements))
