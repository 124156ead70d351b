"""The page for the public: a release and nothing else, so that everything on it is differentially private."""

from __future__ import annotations

from collections.abc import Sequence

from pointillist.checks import share
from pointillist.data.neighbours import Relation
from pointillist.privacy.ledger import rounded_up
from pointillist.release import Release
from pointillist.reports.citing import Evidence, how_to_cite, how_to_verify
from pointillist.reports.figures import column_figures, crossed, strongest_ties, trust_in
from pointillist.reports.ledger_shown import ledger_shown
from pointillist.reports.markup import Html, join, tag
from pointillist.reports.page import Fact, Section, page
from pointillist.reports.promise import blocks, exactly, loss_of, plainly, shown, stated, unit_of
from pointillist.reports.shares_shown import shares_shown
from pointillist.reports.statements import Statements
from pointillist.reports.ties_shown import ties_shown
from pointillist.reports.trust_shown import trust_shown, utility_of, workload_in_words

__all__ = ["public_report"]

CROSSED, WORTH_CROSSING = 4, 0.1
"""Ties whose columns are crossed: how many at most, and how strong they must be."""
NOT_PRIVATE = ("NOT PRIVATE", "This release was made with seeded noise, which anybody can remove. Do not publish it.")


def public_report(
    release: Release, about: Statements | None = None, evidence: Evidence | None = None, level: float = 0.95
) -> str:
    """The page as HTML. It is made from the release alone.

    Args:
        release: the release.
        about: what the holder states.
        evidence: fingerprints and checks of the files of the release, if it was saved.
        level: the probability with which an interval holds the true answer.
    """
    level = share("level", level, 0.95)
    holder = Statements() if about is None else about
    trust = trust_in(release, level)
    sections = [
        Section("what", "What this is", _what(release, holder)),
        Section("promise", "The promise", join((*_warning(release), plainly(release.description)))),
        Section("exactly", "The promise, exactly", join((*_warning(release), exactly(release)))),
        Section("evaluation", "For an evaluation", _evaluation(release, holder, utility_of(release, trust, level))),
        Section("ledger", "How the budget was spent", ledger_shown(release)),
        Section("columns", "The columns", shares_shown(release, column_figures(release, level), level)),
        Section("ties", "The strongest ties", _ties(release)),
        Section("trust", "Where not to trust it", trust_shown(release, trust)),
        Section("cite", "How to cite", how_to_cite(release, holder, evidence)),
        Section("verify", "How to verify", how_to_verify(release, evidence)),
    ]
    title = holder.title or "A synthetic table"
    private = release.description.privacy.private
    lead = (
        holder.description
        or f"Synthetic rows, made {'under differential privacy' if private else 'with seeded noise'}."
    )
    foot = "Made by Pointillist from the release alone. Nothing on this page was computed from the real table."
    banner = None if private else NOT_PRIVATE
    kicker = " \u00b7 ".join(one for one in ("Synthetic data", holder.holder) if one)
    return page(title, kicker, lead.split("\n\n")[0], _facts(release), sections, foot, banner)


def _facts(release: Release) -> list[Fact]:
    about = release.description
    loss = loss_of(about)
    public = about.privacy.relation == Relation.REPLACE.value
    total = f"{about.total:,}"
    return [
        Fact("Epsilon", rounded_up(loss.epsilon), "privacy loss, at most"),
        Fact("Delta", shown(loss.delta), "remainder, at most"),
        Fact("Protects", unit_of(about), f"relation {about.privacy.relation}"),
        Fact("Real rows", total if public else f"about {total}", "public" if public else "measured with noise"),
        Fact("Synthetic rows", f"{about.rows:,}"),
        Fact("Columns", f"{len(release.schema.names):,}"),
    ]


def _warning(release: Release) -> list[Html]:
    """What is said before the promise of a release that does not keep it."""
    if release.description.privacy.private:
        return []
    warning = tag("div", tag("strong", NOT_PRIVATE[0]), tag("p", NOT_PRIVATE[1]), class_="warning")
    return [warning, tag("p", "With random noise in place of the seeded one, the promise would be:")]


def _what(release: Release, holder: Statements) -> Html:
    about = release.description
    made = (
        f"A table of {about.rows:,} made-up rows and {len(release.schema.names):,} columns. It imitates a real table: "
        f"{workload_in_words(release)} were to be kept as well as the noise allows."
    )
    ignored = len(release.schema.ignore)
    left = f" Columns of the real table that were left out: {ignored:,}." if ignored else ""
    promise = "Differentially private: the protection does not depend on what anybody knows or will know."
    good = [
        made + left,
        "Answers to statistical questions about the real table, with errors that this page states.",
        *([promise] if about.privacy.private else []),
    ]
    bad = [
        "No row is the record of a person, even if it looks like one.",
        "No source for single people, rare combinations or small groups.",
        "No exact counts: every figure has an error, and the rows are no random sample of the population.",
        "No replacement for the real table where a decision depends on details that were not measured.",
    ]
    fields = (("Purpose", holder.purpose), ("Holder", holder.holder), ("Contact", holder.contact))
    words = [tag("div", tag("dt", name), tag("dd", stated(text))) for name, text in fields]
    panels = tag("div", _panel("It is", good), _panel("It is not", bad), class_="two")
    return join((panels, tag("dl", *words, class_="blocks")))


def _ties(release: Release) -> Html:
    ties = strongest_ties(release)
    strong = [one for one in ties[:CROSSED] if one.strength >= WORTH_CROSSING]
    return ties_shown(ties, [crossed(release, one.names) for one in strong])


def _panel(title: str, lines: Sequence[str]) -> Html:
    return tag("div", tag("h3", title), tag("ul", *(tag("li", one) for one in lines)), class_="panel")


def _evaluation(release: Release, holder: Statements, utility: str) -> Html:
    intro = (
        "The points that NIST Special Publication 800-226 asks about. What the holder states is marked; nobody but the "
        "holder can check it."
    )
    return join((tag("p", intro), blocks(release, holder, utility)))
