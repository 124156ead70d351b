"""A start fitted to a public table: how well, from what, and when it is taken from the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from pointillist import Grouping, InputError, Product, Release, Table, Workload, all_kway, synthesize
from pointillist.algorithms import Task, get_method
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.families.programs import cache_folder
from pointillist.framework import run
from pointillist.privacy.ledger import Entry
from pointillist.queries.base import Queries
from pointillist.starts.pretraining import Pretraining
from pointillist.updates.losses import BestOf, TiePenalty

SCHEMA = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2)), Categorical("c", (0, 1, 2))))
NETWORK = {"rounds": 2, "batch": 20, "inputs": 8, "hidden": "16", "t_max": 3}
SMALL = {**NETWORK, "pretrain_steps": 40, "pretrain_rate": 0.01}


Fitted = tuple[Queries, ...]


def town(n: int = 400, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    a = rng.choice(2, n, p=(0.8, 0.2))
    return Table(SCHEMA, (a, a + (rng.random(n) < 0.1), a * rng.integers(0, 3, n)))


def pretraining(public: Any = None, k: int = 2, grouping: Grouping = Grouping.MARGINAL, **options: Any) -> Pretraining:
    """The start of GEMPub over all k-way marginals."""
    method = get_method("gem_pub")
    beside = PublicTable.encode(town() if public is None else public, SCHEMA)
    task = Task(all_kway(SCHEMA.domain, k), grouping, beside)
    start = method.algorithm(task, method.configure(SMALL | options)).start
    assert isinstance(start, Pretraining)
    return start


def begin(start: Pretraining, seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    params, info = start(np.random.default_rng(seed))
    return {name: np.array(value) for name, value in params.items()}, info


def same(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("POINTILLIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Fitted]:
    """The fits that were made; they are not made in earnest here: the network stays as it begins."""
    found: list[Fitted] = []

    def stub(self: Pretraining) -> tuple[Any, dict[str, float]]:
        found.append(self.queries)
        return self.family.init(np.random.default_rng(7)), {"loss": 0.5, "steps": 3.0}

    monkeypatch.setattr(Pretraining, "fit", stub)
    return found


# --- the fit


def test_the_fit_is_good_and_says_so(cache: Path) -> None:
    """The start answers the public marginals better than random weights, and a release tells loss and steps."""
    public = town(seed=1)
    releases = [
        synthesize(
            town(seed=seed), epsilon=1.0, method="gem_pub", public=public, workload="marginals:2", settings=SMALL,
        )
        for seed in (2, 3)
    ]  # fmt: skip
    told = [release.description.method.start for release in releases]
    assert told[0] | {"cached": 1.0} == told[1]  # one private table or the other: the same start, fitted once
    assert told[0]["cached"] == 0.0
    assert set(told[0]) == {"marginals", "loss", "steps", "early_stop", "cached"}
    assert (told[0]["marginals"], told[0]["steps"], told[0]["early_stop"]) == (3, 40, 0.0)
    assert [path.suffix for path in cache.iterdir()] == [".npz"]

    start = pretraining(public)
    params, info = begin(start)
    assert info == told[1]
    truth = np.concatenate(start.public.count([one.scope for one in start.queries])) / 400
    noise = np.mean(truth * (1 - truth)) / 400

    def loss(params: Any) -> float:
        return float(np.mean((start.family.answers(params, start.queries) - truth) ** 2) / noise)

    random = start.family.init(np.random.default_rng(0))
    assert loss(params) < 0.1 * loss(random)
    assert loss(params) == pytest.approx(info["loss"], rel=0.1)  # the loss is that before the last, tiny step


def test_a_public_table_of_one_record_has_no_sampling_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    _, info = begin(pretraining(Table(SCHEMA, tuple(np.zeros(5, int) for _ in "abc"))))
    assert 0 < info["loss"] < 5


def test_attributes_that_are_missing_leave_their_marginals_out_and_a_fit_ends_early(cache: Path) -> None:
    start = pretraining(town().project(("b", "a")), pretrain_tolerance=50.0)
    params, info = begin(start)
    assert (info["marginals"], info["early_stop"]) == (1, 1.0)
    assert 1 < info["steps"] < 40
    assert info["loss"] < 50
    assert start.queries == Workload.of(SCHEMA.domain, [("a", "b")]).queries
    truth = np.concatenate(start.public.count([(0, 1)])) / 400
    errors = start.family.answers(params, start.queries) - truth
    loss = np.mean(errors**2) / np.mean(truth * (1 - truth)) * 400
    assert loss == pytest.approx(info["loss"], rel=1e-3)
    # What belongs to the missing attribute alone is not trained.
    random = np.asarray(start.family.init(np.random.default_rng(0))["bias1"])
    assert np.array_equal(params["bias1"][5:], random[5:])
    assert not np.array_equal(params["bias1"][:5], random[:5])


def test_products_are_fitted_to_the_public_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes, of which the last one always holds. What the public table cannot answer is left out."""
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    known = Product.of(SCHEMA.domain, {"a": "values", "b": "prefixes"})
    workload = Workload.of(SCHEMA.domain, [known, Product.of(SCHEMA.domain, {"b": "prefixes", "c": "prefixes"})])
    public = town().project(("a", "b"))
    method = get_method("gem_pub")
    task = Task(workload, public=PublicTable.encode(public, SCHEMA))
    start = method.algorithm(task, method.configure(SMALL)).start
    assert isinstance(start, Pretraining)
    assert start.queries == (known,)
    params, info = begin(start)
    truth = known.holds((*public.codes, np.zeros(len(public), int))).mean(axis=0)
    random = start.family.init(np.random.default_rng(0))
    errors = [np.abs(start.family.answers(found, [known]) - truth).max() for found in (random, params)]
    assert errors[1] < 0.3 * errors[0]
    noise = np.mean(truth * (1 - truth)) / 400
    loss = np.mean((start.family.answers(params, [known]) - truth) ** 2) / noise
    assert loss == pytest.approx(info["loss"], rel=0.1)


@pytest.mark.parametrize("grouping", list(Grouping))
def test_a_table_that_covers_no_marginal_is_refused_before_anything_begins(
    cache: Path, grouping: Grouping, fits: list[Fitted], charges: list[Entry]
) -> None:
    sentence = (
        "public must have all columns of at least one marginal of the workload, got a, b; "
        "use a smaller K or a table with more columns."
    )
    public = town().project(("b", "a"))
    with pytest.raises(InputError) as refused:
        pretraining(public, k=3, grouping=grouping)
    assert str(refused.value) == sentence
    lines: list[str] = []
    with pytest.raises(InputError) as refused:
        synthesize(
            town(), epsilon=1.0, public=public, workload="marginals:3", group=grouping, settings=SMALL,
            announce=lines.append,
        )  # fmt: skip
    assert str(refused.value) == sentence
    assert (lines, fits, charges) == ([], [], [])
    assert not cache.exists()


def test_a_fit_that_diverges_blames_its_rate_and_spends_nothing(cache: Path, charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        synthesize(
            town(), epsilon=1.0, public=town(seed=1), workload="marginals:2",
            settings=SMALL | {"pretrain_rate": 1e30},
        )  # fmt: skip
    assert str(refused.value) == "pretraining: loss must stay finite, got nan; use a smaller pretrain_rate."
    assert charges == []
    assert not cache.exists()


# --- nothing private


def test_the_start_is_made_before_the_door_is_opened(cache: Path, fits: list[Fitted]) -> None:
    class Closed:
        """A private side that must not be asked for anything before the network is there."""

        def open(self) -> NoReturn:
            assert len(fits) == 1
            raise InterruptedError("opened")

    method = get_method("gem_pub")
    task = Task(all_kway(SCHEMA.domain, 2), public=PublicTable.encode(town(), SCHEMA))
    algorithm = method.algorithm(task, method.configure(SMALL))
    with pytest.raises(InterruptedError, match="opened"):
        run(algorithm, Closed(), seed=0)  # type: ignore[arg-type]
    assert len(list(cache.iterdir())) == 1


def test_every_seed_starts_alike(monkeypatch: pytest.MonkeyPatch, fits: list[Fitted]) -> None:
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    assert same(begin(pretraining(), seed=1)[0], begin(pretraining(), seed=2)[0])
    assert len(fits) == 2


# --- the cache


def test_the_second_fit_comes_from_the_cache(cache: Path) -> None:
    first, info = begin(pretraining())
    (file,) = cache.iterdir()
    content = file.read_bytes()
    second, again = begin(pretraining())
    assert (info["cached"], again["cached"]) == (0.0, 1.0)
    assert info | {"cached": 1.0} == again
    assert same(first, second)
    assert file.read_bytes() == content
    file.unlink()
    third, anew = begin(pretraining())
    assert anew == info
    assert same(first, third)  # a fit is the same every time


OTHERS: dict[str, Callable[[], Pretraining]] = {
    "public rows": lambda: pretraining(town(401)),
    "public columns": lambda: pretraining(town().project(("a", "b"))),
    "workload": lambda: pretraining(k=1),
    "steps": lambda: pretraining(pretrain_steps=41),
    "rate": lambda: pretraining(pretrain_rate=0.011),
    "tolerance": lambda: pretraining(pretrain_tolerance=0.3),
    "batch": lambda: pretraining(batch=21),
    "network": lambda: pretraining(hidden="17"),
}
ALIKE: dict[str, Callable[[], Pretraining]] = {
    "order of the public rows": lambda: pretraining(town().take(np.arange(400)[::-1])),
    "grouping": lambda: pretraining(grouping=Grouping.QUERY),
    "rounds": lambda: pretraining(rounds=3, t_max=4, alpha=0.3, beta=0.5),
}


def test_the_key_is_that_of_all_that_a_fit_depends_on() -> None:
    key = pretraining().key()
    keys = {what: make().key() for what, make in OTHERS.items()}
    assert len({key, *keys.values()}) == 1 + len(OTHERS)
    assert {what: make().key() for what, make in ALIKE.items()} == dict.fromkeys(ALIKE, key)


def test_marginals_that_are_not_covered_are_not_in_the_key() -> None:
    method = get_method("gem_pub")
    public = PublicTable.encode(town().project(("a", "b")), SCHEMA)
    keys = set()
    for scopes in ([(0, 1)], [(0, 1), (1, 2)], [(0, 2), (0, 1), (0, 1, 2)]):
        task = Task(Workload.of(SCHEMA.domain, scopes), public=public)
        start = method.algorithm(task, method.configure(SMALL)).start
        assert isinstance(start, Pretraining)
        keys.add(start.key())
    assert len(keys) == 1


def test_every_setting_of_the_descent_is_in_the_key() -> None:
    start = pretraining()
    recipe = start.recipe
    changed = [
        replace(recipe, optimizer=replace(recipe.optimizer, cosine=False)),
        replace(recipe, stopping=BestOf(3)),
        replace(recipe, penalty=TiePenalty(0.4)),
        replace(recipe, resample=True),
    ]
    keys = {replace(start, recipe=other).key() for other in changed}
    assert len(keys | {start.key()}) == 1 + len(changed)


def test_another_table_is_another_fit(cache: Path, fits: list[Fitted]) -> None:
    for public, cached in ((town(), 0.0), (town(401), 0.0), (town(), 1.0)):
        assert begin(pretraining(public))[1]["cached"] == cached
    assert len(fits) == len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "text", "empty", "array"])
def test_a_damaged_file_is_made_anew(damage: str, cache: Path, fits: list[Fitted]) -> None:
    good, _ = begin(pretraining())
    (file,) = cache.iterdir()
    content = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        content[len(content) // 2] ^= 255
        file.write_bytes(content)
    elif damage == "text":
        file.write_text("not a file of arrays")
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        with file.open("wb") as target:
            np.save(target, np.zeros(3))
    params, info = begin(pretraining())
    assert info["cached"] == 0.0
    assert same(params, good)
    assert list(cache.iterdir()) == [file]
    assert begin(pretraining())[1]["cached"] == 1.0
    assert len(fits) == 2


def test_a_file_that_cannot_be_written_leaves_nothing_behind(cache: Path, fits: list[Fitted]) -> None:
    begin(pretraining())
    (file,) = cache.iterdir()
    file.unlink()
    file.mkdir()  # it can neither be read nor replaced
    assert begin(pretraining())[1]["cached"] == 0.0
    assert list(cache.iterdir()) == [file]


def test_a_file_that_is_not_finished_is_removed(
    cache: Path, monkeypatch: pytest.MonkeyPatch, fits: list[Fitted]
) -> None:
    unfinished: list[Path] = []

    def full(file: Any, **arrays: np.ndarray) -> NoReturn:
        file.write(b"PK")
        unfinished.extend(cache.iterdir())
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(np, "savez", full)
        good, info = begin(pretraining())
    assert info["cached"] == 0.0
    assert len(unfinished) == 1
    assert list(cache.iterdir()) == []
    params, info = begin(pretraining())
    assert info["cached"] == 0.0
    assert same(params, good)
    assert begin(pretraining())[1]["cached"] == 1.0
    assert len(fits) == 2


def test_an_empty_variable_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[Fitted]) -> None:
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert begin(pretraining())[1]["cached"] == 0.0
    assert len(fits) == 2
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("where", ["file", "file/below", "nowhere"])
def test_a_folder_that_cannot_be_written_to_is_no_error(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[Fitted]
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("POINTILLIST_CACHE", "/proc/nowhere" if where == "nowhere" else str(tmp_path / where))
    for _ in range(2):
        assert begin(pretraining())[1]["cached"] == 0.0
    assert len(fits) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "x"


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("POINTILLIST_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("POINTILLIST_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "pointillist"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "pointillist"

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    assert cache_folder() is None


def test_a_release_does_not_need_the_cache(cache: Path, tmp_path: Path, fits: list[Fitted]) -> None:
    release = synthesize(
        town(), epsilon=1.0, method="gem_pub", public=town(seed=1), workload="marginals:2", settings=SMALL
    )
    folder = release.save(tmp_path / "release")
    for file in cache.iterdir():
        file.unlink()
    loaded = Release.load(folder)
    assert np.array_equal(loaded.answers(), release.answers())
    assert len(fits) == 1


# --- settings


STEPS = "pretrain_steps must be at least 1, got {}; give for example 1000."
RATE = "pretrain_rate must be a finite number above 0, got {}; give for example 0.001."
TOLERANCE = "pretrain_tolerance must be a finite number, 0 or more, got {}; give 0.2."


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("pretrain_steps", 0, STEPS.format(0)),
        ("pretrain_steps", -1, STEPS.format(-1)),
        ("pretrain_rate", 0, RATE.format(0.0)),
        ("pretrain_rate", -1, RATE.format(-1.0)),
        ("pretrain_rate", float("inf"), RATE.format("inf")),
        ("pretrain_tolerance", -1, TOLERANCE.format(-1.0)),
        ("pretrain_tolerance", float("inf"), TOLERANCE.format("inf")),
    ],
)
def test_a_wrong_setting_is_called_by_its_name(name: str, value: float, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        get_method("gem_pub").configure({name: value})
    assert str(refused.value) == sentence
    get_method("gem_pub").configure({"pretrain_steps": 1, "pretrain_rate": 1e-9, "pretrain_tolerance": 0})
