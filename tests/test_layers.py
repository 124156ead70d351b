"""Imports go one way: data -> queries -> privacy -> framework -> ... -> cli, and heavy packages are lazy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pointillist

ROOT = Path(pointillist.__file__).parent
LAYERS = [
    "errors", "reporting", "checks", "showing", "memory", "data", "queries", "privacy", "framework", "strategies",
    "families", "solvers", "updates", "starts", "algorithms", "refining", "planning", "answers", "release", "accounts",
    "job", "runs", "discovering", "evaluation", "synthesizer", "attestation", "auditing", "reports", "__init__",
    "leaving", "cli_tables", "cli_account", "cli_answer", "cli_attest", "cli_audit", "cli_complete", "cli_output",
    "cli_plan", "cli_sample", "cli_report", "cli_schema", "cli_workload", "cli",
]  # fmt: skip
HEAVY = (
    "opendp", "pyarrow", "pandas", "polars", "jax", "optax", "pysat", "matplotlib", "cryptography", "sklearn",
    "pyreadstat", "duckdb", "pyspark",
)  # fmt: skip


def layer_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append(node.module)
        elif isinstance(node, ast.ImportFrom):
            found.append("relative import")
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
    return found


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_to_earlier_layers_only(path: Path) -> None:
    here = LAYERS.index(layer_of(path))
    for name in imports_of(path):
        assert name != "relative import", "write imports in full"
        if name.partition(".")[0] != "pointillist":
            continue
        target = name.split(".")[1] if "." in name else "__init__"
        assert LAYERS.index(target) <= here, f"{path.name} imports {name} from a later layer"


def test_every_module_belongs_to_a_layer() -> None:
    assert len(MODULES) > 20
    assert {layer_of(path) for path in MODULES} <= set(LAYERS)


def test_the_private_side_never_imports_jax() -> None:
    names = [name for path in (ROOT / "privacy").rglob("*.py") for name in imports_of(path)]
    assert "numpy" in names
    assert not [name for name in names if name.partition(".")[0] in ("jax", "optax")]


COUNTING = {
    "pointillist.data.sources": {"count", "count_batches"},
    "pointillist.data.kernel": {"count_cells", "partial_counts"},
    "pointillist.queries.counting": {"count_rows", "exact_counts"},
}
"""What counts the rows of a source, by module. Models and public records are summed up by other functions."""

MAY_COUNT = {
    "privacy/curator.py": {"count_rows"},
    "data/sources.py": {"count_cells"},  # defines count
    "data/spark.py": {"partial_counts"},  # counts where the rows are, when the curator asks for counts
    "queries/counting.py": {"count"},  # defines exact_counts, for evaluation
    "evaluation/": {"count", "exact_counts"},  # compares a release with the real table, outside of any run
}


def names_from(path: Path) -> dict[str, set[str]]:
    """The names that a file imports from each module, and what it reaches through modules that it imports whole."""
    tree = ast.parse(path.read_text())
    found: dict[str, set[str]] = {}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
            modules.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            modules.update({alias.asname or alias.name: alias.name for alias in node.names})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            whole = modules.get(ast.unparse(node.value), "")
            found.setdefault(whole, set()).add(node.attr)
    return found


def counting_in(path: Path) -> set[str]:
    """What a file takes from elsewhere to count the rows of a source."""
    found = names_from(path)
    return {name for module, names in COUNTING.items() for name in (names | {"*"}) & found.get(module, set())}


def calls_method(path: Path, name: str) -> bool:
    """Whether a file calls a method of this name of anything."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr == name for called in calls)


def reads_batches(path: Path) -> bool:
    """Whether a file asks anything for its batches of rows."""
    return calls_method(path, "batches")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_curator_counts_private_rows(path: Path) -> None:
    """Inside a run nothing but the curator asks a source: the counting functions are imported there alone."""
    name = str(path.relative_to(ROOT))
    allowed = [names for place, names in MAY_COUNT.items() if name.startswith(place)]
    assert counting_in(path) <= set().union(*allowed), f"{name} must ask the curator"
    assert not reads_batches(path) or name in ("data/sources.py", "data/probes.py", "data/opening.py")


def test_a_source_of_the_private_table_is_made_for_the_curator_alone() -> None:
    makers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if "TableSource" in names_from(path).get("pointillist.data.sources", set())
    }
    # The second counts what a private draft asks the curator for, the third compares a release with the real table,
    # the fourth has made-up tables only.
    assert makers == {"job.py", "data/probes.py", "evaluation/report.py", "auditing/parts.py"}


def test_only_the_curator_asks_for_the_values_of_a_column() -> None:
    """A source is asked for them by the curator, and one that is looked for later asks the one behind it; code books,
    which are public, have a method of the same name."""
    asking = {str(path.relative_to(ROOT)) for path in MODULES if calls_method(path, "values_of")}
    assert asking == {"privacy/curator.py", "data/sources.py", "data/drafts/types.py", "data/statistics_files.py"}
    makers = {str(path.relative_to(ROOT)) for path in MODULES if "ProbedSource(" in path.read_text()}
    assert makers == {"discovering/draft.py"}


OF_TEXTS = {
    "OpenRows": {"job.py"},
    "ListedSource": set(),
    "Numbered": set(),
    "numbered": {"job.py", "data/spark.py"},
    "counted_texts": {"data/spark.py"},
    "values_among": {"data/spark.py"},
    "listed_codes": {"data/spark.py"},
}
"""What reads or has the texts of columns to be discovered, and who uses it."""


@pytest.mark.parametrize("name", OF_TEXTS)
def test_rows_whose_values_are_not_listed_are_made_for_the_curator_alone(name: str) -> None:
    """Their texts are private: nothing but the sources of a run have them."""
    users = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if {name, "*"} & names_from(path).get("pointillist.data.opening", set())
    }
    assert users == OF_TEXTS[name]


def test_the_curator_itself_is_found_to_count() -> None:
    """The search is able to find something: also a module that is imported whole."""
    assert counting_in(ROOT / "privacy" / "curator.py") == {"count_rows"}
    assert counting_in(ROOT / "queries" / "counting.py") == {"count"}
    assert reads_batches(ROOT / "data" / "sources.py")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from pointillist.data.sources import count as c", {"count"}),
        ("from pointillist.data.sources import Source, sum_weights", set()),
        ("from pointillist.data.sources import *", {"*"}),
        ("import pointillist.data.sources\npointillist.data.sources.count(s, [])", {"count"}),
        ("from pointillist.data import sources as s\ns.count_batches([], d, [])", {"count_batches"}),
        ("from pointillist.queries.counting import exact_counts, weighted_answers", {"exact_counts"}),
        ("def f():\n    from pointillist.queries import counting\n    counting.exact_counts(s, q)", {"exact_counts"}),
        ("names.count(name)", set()),
    ],
)
def test_counting_is_found_however_it_is_imported(tmp_path: Path, code: str, found: set[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(code)
    assert counting_in(file) == found


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, pointillist; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
