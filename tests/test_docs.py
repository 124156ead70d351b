"""The pages keep what they say: tables, code, links, commands, the skeleton and the citation."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer

import pointillist
from pointillist import Grouping, InputError, Relation, Schema, Workload, load, prepare
from pointillist.algorithms import METHODS, auto, by_ties, forecast
from pointillist.algorithms.settings import describe
from pointillist.cli import app
from pointillist.data.columns import COLUMN_KINDS, EXTRA_KINDS, categorical, grid, numeric, temporal
from pointillist.families.saved import FAMILIES, MODELS
from pointillist.framework import Replay, run
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Whole
from pointillist.queries.workload import KINDS
from pointillist.strategies import Rounds, SelectEvenly
from pointillist.updates import coarser, losses, shrinkage

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.glob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\S*)[^\n`]*\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What the skeletons of the pages add to the registries is removed again."""
    known = [(entries, dict(entries)) for entries in (FAMILIES, MODELS, KINDS)]
    yield
    for entries, before in known:
        entries.clear()
        entries.update(before)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, *kinds: str) -> list[tuple[int, str]]:
    """(line, text) of every fenced block of these kinds, without its indentation."""
    text = path.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start()) + 1, re.sub(rf"(?m)^{found['indent']}", "", found["body"]))
        for found in FENCE.finditer(text)
        if found["kind"] in kinds
    ]


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def every_page(*pages: Path) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages or PAGES, ids=name_of)


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module


def test_the_tables_of_the_registry_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "write_tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def page_with(tool: ModuleType, *names: str) -> str:
    """A page with an old table for every name."""
    return (
        "before\n" + "".join("{}\nOLD TABLE\n{}\nbetween\n".format(*tool.markers(name)) for name in names) + "after\n"
    )


def test_a_stale_table_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = module_at(ROOT / "tools" / "write_tables.py")
    page = tmp_path / "page.md"
    page.write_text(page_with(tool, "methods", "settings pep"), encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "PAGES", ("page.md",))
    assert tool.main(["--check"]) == 1
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nbetween\nafter\n")
    assert "OLD TABLE" not in text
    assert all(f"| `{name}` |" in text for name in METHODS)
    assert all(f"| `{name}` |" in text for name, *_ in describe(METHODS["pep"].settings))
    page.write_text(text.replace("| `slack` |", "| `slak` |"), encoding="utf-8")
    assert tool.main(["--check"]) == 1


@pytest.mark.parametrize("names", [(), ("methods", "methods"), ("settings nobody",)])
def test_wrong_markers_are_refused(names: tuple[str, ...]) -> None:
    tool = module_at(ROOT / "tools" / "write_tables.py")
    with pytest.raises(SystemExit):
        tool.filled(page_with(tool, *names), "page.md")


def test_a_marker_without_its_end_is_refused() -> None:
    tool = module_at(ROOT / "tools" / "write_tables.py")
    begin, end = tool.markers("methods")
    for text in (begin, end, f"{end} {begin}"):
        with pytest.raises(SystemExit):
            tool.filled(text, "page.md")


def test_both_pages_show_the_same_table() -> None:
    tool = module_at(ROOT / "tools" / "write_tables.py")
    pages = (ROOT / "README.md", DOCS / "framework.md")
    assert all(tool.methods_table() in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_section(method: str) -> None:
    """One section with the method's name in its heading and the table of its settings."""
    tool = module_at(ROOT / "tools" / "write_tables.py")
    sections = re.split(r"(?m)^## ", (DOCS / "methods.md").read_text(encoding="utf-8"))[1:]
    found = [text for text in sections if re.match(rf"[^\n]*\(`{re.escape(method)}`\)\n", text)]
    assert len(found) == 1, f"docs/methods.md must have one section with (`{method}`) in its heading"
    assert all(marker in found[0] for marker in tool.markers(f"settings {method}"))


def test_sections_are_about_methods_that_exist() -> None:
    headings = re.findall(r"(?m)^## [^\n]*\(`([^`]+)`\)$", (DOCS / "methods.md").read_text(encoding="utf-8"))
    assert set(headings) <= METHODS.keys()


@every_page(*(page for page in PAGES if blocks(page, "python")))
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page run in order, in one namespace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(DOCS)
    names: dict[str, object] = {"__name__": "page"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * line + code, str(page), "exec"), names)
    for skeleton in DOCS.glob("skeleton_*.py"):
        sys.modules.pop(skeleton.stem, None)


@pytest.mark.parametrize("block", blocks(DOCS / "schema.md", "toml"), ids=lambda block: f"line {block[0]}")
def test_the_schemas_of_the_page_are_schemas(block: tuple[int, str], tmp_path: Path) -> None:
    """Every example is a schema, or the columns of one, and is written again with the same content."""
    ((_, places),) = blocks(DOCS / "schema.md", "text")
    (tmp_path / "postcodes.csv").write_text(places, encoding="utf-8")
    head = "" if block[1].startswith("format") else "format = 1\nreviewed = true\n"
    more = '[[column]]\nname = "one more"\ntype = "categorical"\nvalues = [0, 1]\n'
    (tmp_path / "schema.toml").write_text(f"{head}{block[1]}\n{more}", encoding="utf-8")
    schema = Schema.load(tmp_path / "schema.toml")
    assert len(schema.names) >= 2
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema


def test_the_page_has_every_key_of_every_kind_of_column() -> None:
    text = (DOCS / "schema.md").read_text(encoding="utf-8")
    for module in (categorical, grid, numeric, temporal):
        assert all(f"| `{key}` |" in text for key in module.KEYS), module.__name__
    kinds = [*COLUMN_KINDS, *EXTRA_KINDS]
    assert all(f'type = "{kind}"' in text for kind in kinds)
    keys = {one.name for kind in EXTRA_KINDS.values() for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    assert all(f"`{key}" in text for key in keys)


def test_the_readme_shows_a_quickstart() -> None:
    ((_, code),) = blocks(ROOT / "README.md", "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


@every_page()
def test_relative_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            assert not anchor, f"{target}: link to whole pages only"
            assert (page.parent / path).exists(), f"{target} does not exist"


@every_page()
def test_files_and_make_targets_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make (?:[A-Z]+=\S+ )?([a-z][a-z-]*)", text, re.MULTILINE):
        assert target in targets
    for name in re.findall(r"`([\w./-]+/[\w.-]*\.(?:py|md|toml))`", prose(page)):
        assert (ROOT / name).exists() or (ROOT / "src" / "pointillist" / name).exists(), name


def shown_commands(page: Path) -> Iterator[str]:
    """Command lines in shell blocks, and commands inside a sentence."""
    for _, text in blocks(page, "sh", "console", "bash"):
        yield from (line.partition("#")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    yield from re.findall(r"`([^`\n]+)`", prose(page))


@every_page()
def test_commands_use_options_that_exist(page: Path) -> None:
    for shown in shown_commands(page):
        if shown.startswith("pointillist "):
            words = shown.split()[1:]
            command = typer.main.get_command(app)
            # a group: the next word is one of its commands
            while words and hasattr(command, "commands"):
                if words[0] not in command.commands and hasattr(command, "default_command"):
                    words.insert(0, command.default_command)
                if words[0].startswith("-"):
                    break
                assert words[0] in command.commands, shown
                command = command.commands[words.pop(0)]
            known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            options = {word.partition("=")[0] for word in words if word.startswith("-")}
            assert options <= known, f"{shown}: {sorted(options - known)}"


def test_the_command_check_sees_the_commands() -> None:
    shown = [line for line in shown_commands(ROOT / "README.md") if line.startswith("pointillist ")]
    assert {line.split()[1] for line in shown} >= {"schema", "synth", "evaluate", "methods"}
    assert any("--epsilon" in line for line in shown)


@pytest.mark.parametrize("name", pointillist.__all__)
def test_public_names_are_documented(name: str) -> None:
    """The page of public names is written from these docstrings."""
    doc = getattr(pointillist, name).__doc__
    assert doc
    assert not doc.startswith(f"{name}("), "a dataclass without a docstring of its own"


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("grouping", list(Grouping))
def test_the_skeleton_runs_and_replays(grouping: Grouping, relation: Relation) -> None:
    skeleton = module_at(DOCS / "skeleton_algorithm.py")
    table = load("demo").project(["district", "age", "occupation", "commute"])
    options = {"epsilon": 1.0, "delta": 1e-9, "workload": "marginals:2", "settings": {"rounds": 4}, "seed": 3}
    job = prepare(table, method=skeleton.METHOD, group=grouping, relation=relation, **options)
    release = job.run()
    assert len(release.log.measurements) == 4
    assert job.curator.ledger.spent <= job.curator.ledger.limit
    assert np.isfinite(release.params).all()
    assert release.params.sum() == pytest.approx(1)
    again, _ = run(job.algorithm, Replay(release.log), seed=3)
    assert np.array_equal(release.params, again)


def test_the_skeleton_learns() -> None:
    """With a budget so large that noise hardly matters, the measured marginal is met."""
    skeleton = module_at(DOCS / "skeleton_algorithm.py")
    table = load("demo").project(["district", "occupation", "commute"])
    options = {"epsilon": 100.0, "delta": 1e-3, "workload": "marginals:2", "settings": {"rounds": 1}}
    release = prepare(table, method=skeleton.METHOD, **options).run()
    (measurement,) = release.log.measurements
    answers = release.answers(Workload(table.domain, (measurement.queries,)))
    assert np.abs(answers - measurement.feasible(release.log.total)).max() < 1e-3


@pytest.mark.parametrize("relation", list(Relation))
def test_the_skeleton_of_queries_states_its_sensitivity(relation: Relation) -> None:
    """Over all neighbours: a record that comes or goes, or one in the place of another."""
    skeleton = module_at(DOCS / "skeleton_queries.py")
    for shape, widths in (((4, 4), (0, 1, 2)), ((3, 5), (1, 4)), ((2, 2), (1,)), ((5, 5), (0, 2, 3, 4))):
        bands = skeleton.Bands((1, 3), shape, widths)
        codes = np.indices(shape).reshape(2, -1)
        held = bands.holds([np.zeros(0), codes[0], np.zeros(0), codes[1]]).astype(int)
        others = held if relation is Relation.REPLACE else np.zeros((1, len(widths)), int)
        changes = np.abs(held[:, None, :] - others)
        stated = bands.sensitivity(relation)
        assert stated.exact
        assert stated.single == changes.max()
        assert stated.l1 == changes.sum(axis=2).max()
        assert stated.l2_squared == (changes**2).sum(axis=2).max()


def test_the_limits_of_alpha_are_those_of_the_page() -> None:
    low, high = re.findall(r"alpha must be at least ([\d.]+) and at most ([\d.]+),", prose(DOCS / "framework.md"))[0]
    for good, bad in ((float(low), float(low) * 0.999), (float(high), float(high) * 1.0001)):
        SelectEvenly(Whole(()), MaxError(), Rounds(1), alpha=good)
        with pytest.raises(InputError):
            SelectEvenly(Whole(()), MaxError(), Rounds(1), alpha=bad)


def test_the_constants_of_the_default_are_those_of_the_pages() -> None:
    page, methods, public = (prose(DOCS / f"{name}.md") for name in ("how-it-works", "methods", "public-data"))
    defaults = auto.Settings()
    halfway, tau = losses.HALFWAY, shrinkage.TAU
    assert f"a table of {defaults.rows} *relaxed rows*" in page
    assert f"c σ² > {defaults.most_noise}" in page
    for text in (page, methods):
        assert f"{halfway} log(1 + v_j / {halfway})" in text
        assert f"s · {shrinkage.LAMBDA:g} σ^(-{shrinkage.POWER})" in text  # noqa: RUF001
    assert f"No share starts below {shrinkage.LEAST_SHARE:.4f}" in page
    assert f"first {auto.RAMP:.0%}".replace("%", " %") in page
    assert f"y + {tau} z and y - z / {tau}" in page
    assert f"rises to {shrinkage.FACTOR}, and then to {shrinkage.FACTOR}³, as" in page
    assert (defaults.fits, shrinkage.MOST_USEFUL, shrinkage.MOST_UP) == (3, 3, 3)
    assert "mixture of three fits" in page
    assert "up to three times" in page
    assert coarser.WEIGHT == 1.0
    assert "A block counts like a cell" in " ".join(page.split())
    assert f"weight of {shrinkage.KAPPA}" in " ".join(public.split())


def test_the_constants_of_the_plan_are_those_of_the_page() -> None:
    page = " ".join(prose(DOCS / "how-it-works.md").replace(" %", "%").split())
    for sentence in (
        f"They get at most {by_ties.FIRST:.0%} of",
        f"an expected distance of {by_ties.FIRST_ERROR} each",
        f"All ties together get at most {by_ties.TIES:.0%} of",
        f"a noise of {by_ties.TIES_ERROR} of the rows",
        f"{by_ties.EVEN:.0%} of the round is spread evenly",
        f"if its share would be below {by_ties.LEAST_SHARE:g} or its noise above {by_ties.MOST_NOISE:.0%} of the rows",
        f"on the one-way marginals would be above {by_ties.MOST_TIES_ERROR:.0%} of the rows",
        f"it is {forecast.HIGHER} times the square root",
    ):
        assert sentence in page


def test_the_citation_is_complete() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "\t" not in text
    for line in text.splitlines():  # the part of YAML that the file uses
        assert re.fullmatch(r'(  )*(- )?([a-z-]+:( (".*"|[^":#]+))?|".*")', line), line
    top = dict(re.findall(r'^([a-z-]+): "?(.*?)"?$', text, re.MULTILINE))
    assert top["cff-version"] == "1.2.0"
    assert top["version"] == pointillist.__version__
    assert top["license"] == "Apache-2.0"
    assert {"message", "title", "type"} <= top.keys()
    assert re.search(r"^authors:\n  - name: ", text, re.MULTILINE)
    reference = text.partition("\nreferences:\n")[2]
    assert all(f"family-names: {name}\n" in reference for name in ("Liu", "Vietri", "Wu"))
    assert "Iterative Methods for Private Synthetic Data: Unifying Framework and New Methods" in reference


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{pointillist.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
