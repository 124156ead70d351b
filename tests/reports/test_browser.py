"""The pages in a real browser: nothing is loaded or logged, charts are drawn, the keyboard and screen readers work."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.reports.browser import axe_core, chromium, opened, requests_of
from tests.reports.made import hostile_table

from pointillist import Release
from pointillist.reports import Evidence, Statements, holder_report, public_report

NAMES = ("public", "fine", "wide", "seeded", "holder")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(
    release: Release, fine: Release, wide: Release, seeded: Release, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """All pages, as files."""
    evidence = Evidence({"synthetic.csv": "ab" * 32}, [("files", "five of them")])
    about = Statements(title="A town", holder="Us", collection="By post.", citation="Us (2026): A town.")
    made = {
        "public": public_report(release, about, evidence),
        "fine": public_report(fine),
        "wide": public_report(wide),
        "seeded": public_report(seeded),
        "holder": holder_report(release, hostile_table()),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("name", NAMES)
def test_it_opens_without_messages_and_loads_nothing_else(browser: Any, pages: dict[str, Path], name: str) -> None:
    opened(browser, pages[name])
    assert browser.get_log("browser") == []
    assert requests_of(browser) == [pages[name].as_uri()]
    assert browser.execute_script("return document.scripts.length + document.images.length") == 0


def test_requests_and_messages_would_be_seen(browser: Any, tmp_path: Path) -> None:
    """The check itself is able to fail."""
    bad = tmp_path / "bad.html"
    bad.write_text("<!DOCTYPE html><img src='other.png'><script>console.error('x')</script>", encoding="utf-8")
    opened(browser, bad)
    assert len(requests_of(browser)) == 2
    assert browser.get_log("browser")


@pytest.mark.parametrize("name", ["public", "holder"])
def test_charts_are_drawn(browser: Any, pages: dict[str, Path], name: str) -> None:
    opened(browser, pages[name])
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('svg[role=img]')].map(svg => [svg.getBoundingClientRect().width,"
        " Math.max(...[...svg.querySelectorAll('rect:not(.ground)')].map(one => one.getBoundingClientRect().width))])"
    )
    assert len(drawn) >= 5
    assert all(width > 100 for width, _ in drawn)
    assert sum(bar > 10 for _, bar in drawn) >= len(drawn) - 1  # no answer may be one not to trust
    lines = "return [...document.querySelectorAll('.whisker')].map(one => getComputedStyle(one).stroke)"
    assert len(browser.execute_script(lines)) >= 12
    fill = "return getComputedStyle(document.querySelector('.bar.main')).fill"
    light = browser.execute_script(fill)
    opened(browser, pages[name], dark=True)
    assert browser.execute_script(fill) != light


@pytest.mark.parametrize("name", NAMES)
def test_narrow_screens_do_not_scroll_sideways(browser: Any, pages: dict[str, Path], name: str) -> None:
    opened(browser, pages[name], width=500)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) <= 0


def test_the_keyboard_reaches_everything(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["public"])

    def press(key: str) -> str:
        ActionChains(browser).send_keys(key).perform()
        return str(browser.execute_script("return document.activeElement.tagName + document.activeElement.innerText"))

    assert press(Keys.TAB).startswith("ASkip to the content")
    assert press(Keys.TAB) == "AWhat this is"
    press(Keys.ENTER)
    assert browser.current_url.endswith("#what")
    seen = {press(Keys.TAB)[:7] for _ in range(40)}
    assert "SUMMARY" in seen
    browser.execute_script("document.querySelector('summary').focus()")
    assert not browser.execute_script("return document.querySelector('details').open")
    press(Keys.ENTER)
    assert browser.execute_script("return document.querySelector('details').open")


def test_the_holders_banner_stays_on_the_screen_and_on_paper(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    opened(browser, pages["holder"])
    place = "return document.querySelector('.banner').getBoundingClientRect().top"
    for share in (0.3, 0.6, 1.0):
        browser.execute_script(f"window.scrollTo(0, document.body.scrollHeight * {share})")
        assert browser.execute_script(place) == pytest.approx(0, abs=1)
    paper = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert paper.startswith(b"%PDF")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    mark = "const mark = getComputedStyle(document.body, '::after'); return [mark.content, mark.position]"
    assert browser.execute_script(mark) == ['"NOT PRIVATE"', "fixed"]  # what is fixed is printed on every page


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_core(tmp_path_factory.mktemp("axe"))


def violations(browser: Any, axe: str) -> list[str]:
    """The serious violations that axe-core finds, with everything opened."""
    browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.execute_script(axe)
    run = "axe.run(document, {resultTypes: ['violations']}).then(found => arguments[0](found.violations))"
    found = browser.execute_async_script(run)
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in serious]


@pytest.mark.parametrize(("name", "dark"), [*((name, False) for name in NAMES), ("public", True), ("holder", True)])
def test_axe_finds_no_serious_violation(browser: Any, pages: dict[str, Path], axe: str, name: str, dark: bool) -> None:
    opened(browser, pages[name], dark)
    assert violations(browser, axe) == []


def test_axe_would_find_one(browser: Any, axe: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><html lang=en><title>x</title><p style='color: #ccc; background: #fff'>pale", encoding="utf-8"
    )
    opened(browser, bad)
    assert violations(browser, axe)
