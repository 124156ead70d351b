"""Which answers not to trust: a section of the page of a release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pointillist.release import Release
from pointillist.reports.charts import Bar, bar_chart, percent
from pointillist.reports.figures import SizeClass, Trust
from pointillist.reports.markup import Html, data_table, join, tag

__all__ = ["source_of", "trust_shown", "utility_of", "workload_in_words"]

RULE = " Above this size, 95 % of the answers have an interval that is narrower than the answer."
ALONE = "An answer that no measurement determines has no interval."
NOTHING = "No answer of the workload is large enough to be used alone."


def workload_in_words(release: Release) -> str:
    """The size of the workload.

    Args:
        release: the release.
    """
    return release.workload.describe().partition(" (")[0]


def source_of(release: Release) -> str:
    """Where the intervals come from, in words.

    Args:
        release: the release.
    """
    if release.replicates is None:
        return f"They come from the noise of the measurements alone. {ALONE}"
    return (
        f"They come from {len(release.replicates):,} simulated runs on the model, which count the error of the model "
        "as well as the noise, or from the noise of the measurements where that is narrower."
    )


def utility_of(release: Release, trust: Trust, level: float) -> str:
    """How large the errors are, in a few sentences.

    Args:
        release: the release.
        trust: the judgement of its answers.
        level: the probability with which an interval holds the true answer.
    """
    known = [one for one in trust.classes if one.answers and not math.isnan(one.width)]
    widths = "; ".join(f"answers {_range(one)}, \u00b1 {percent(one.width)}" for one in known) or "none known"
    text = f"Median half widths of the {100 * level:g} % intervals, in shares of the rows: {widths}."
    matched = release.description.matched
    if matched is None:
        return text
    after = percent(matched.after)
    return f"{text} The synthetic rows differ from the model by {after} on average (total variation distance)."


def trust_shown(release: Release, trust: Trust) -> Html:
    """How many answers have an interval that is wider than the answer, by their size, and where they are.

    Args:
        release: the release.
        trust: the judgement of its answers.
    """
    every = f"all {trust.of:,}" if trust.answers == trust.of else f"{trust.answers:,} of {trust.of:,}"
    intro = (
        "An answer whose interval is wider than the answer itself says little more than that it is small. This is how "
        f"it is for {every} answers of the workload ({workload_in_words(release)}), by their size. An answer without "
        "an interval counts as one not to trust."
    )
    found = [one for one in trust.classes if one.answers]
    worst = [(" \u00d7 ".join(names), percent(share)) for names, share in trust.worst]
    head = ("Columns", "Share of the answers")
    where = [data_table("Where most answers are not to be trusted", head, worst)] if worst else []
    chart = tag("div", _chart(found), class_="card wide")
    rule = _rule(trust, release.description.total)
    return join((tag("p", intro), rule, chart, _table(found), *_doubtful(trust), *where))


def _doubtful(trust: Trust) -> list[Html]:
    """The largest answers not to trust, which are the most likely to be used."""
    if not trust.doubtful:
        return []
    rows = [(one.text, percent(one.estimate), percent(one.low), percent(one.high)) for one in trust.doubtful]
    return [data_table("The largest answers that are not to be trusted", ("Rows with", "Share", "From", "To"), rows)]


def _rule(trust: Trust, total: int) -> Html:
    if trust.safe is None:
        return tag("div", tag("p", NOTHING), class_="warning")
    rows = f"about {max(1, round(trust.safe * total)):,} rows"
    text = f"Rule of thumb: use answers of at least {percent(trust.safe)} ({rows})."
    return tag("blockquote", tag("p", tag("strong", text), RULE))


def _chart(found: Sequence[SizeClass]) -> Html:
    bars = [
        Bar(f"answers {_range(one)}", one.unsure / one.answers, f"{one.unsure:,} of {one.answers:,}", kind="unsure")
        for one in found
    ]
    words = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
    return bar_chart("trust-chart", "Answers not to trust, by their size", words, bars, most=1.0, letters=38)


def _table(found: Sequence[SizeClass]) -> Html:
    head = ("Answers", "Number", "Not to trust", "Of these without interval", "Median half width")
    rows = [
        (_range(one), f"{one.answers:,}", f"{one.unsure:,}", f"{one.unknown:,}", percent(one.width)) for one in found
    ]
    return data_table("Answers of the workload by size", head, rows)


def _range(one: SizeClass) -> str:
    if one.high > 1:
        return f"of {100 * one.low:g} % and more"
    return f"below {100 * one.high:g} %" if one.low == 0 else f"from {100 * one.low:g} to {100 * one.high:g} %"
