"""How to cite and how to verify a release: two sections of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pointillist.privacy.ledger import rounded_up
from pointillist.release import Release
from pointillist.reports.markup import Html, data_table, disclosure, join, tag
from pointillist.reports.promise import loss_of, shown, stated, unit_of
from pointillist.reports.statements import Statements
from pointillist.reports.trust_shown import workload_in_words

__all__ = ["Evidence", "how_to_cite", "how_to_verify"]

ROWS = "synthetic.csv"
COMMANDS = "pip install pointillist\npointillist verify RELEASE\npointillist verify RELEASE --replay"
VERIFYING = (
    "Anybody with the folder of the release can check it without the real table: that the ledger adds up, that every "
    "noisy value was paid for, that the budget follows from epsilon and delta and, by a replay, that the model and the "
    "rows follow from the noisy values alone."
)
TRUSTED = "No check shows that the noise was drawn as stated: for that, the holder must be trusted."


@dataclass(frozen=True)
class Evidence:
    """What is known about the files of a release.

    Attributes:
        digests: the SHA-256 of each file, by name.
        checks: the name and the reason of each check of ``pointillist verify`` that passed.
        signed: whether there is a signature.
    """

    digests: Mapping[str, str]
    checks: Sequence[tuple[str, str]] = ()
    signed: bool = False


def how_to_cite(release: Release, holder: Statements, evidence: Evidence | None) -> Html:
    """The citation that the holder wants, or one from what is known.

    Args:
        release: the release.
        holder: what the holder states.
        evidence: what is known about its files.
    """
    digest = "" if evidence is None else evidence.digests.get(ROWS, "")
    mark = [tag("p", f"SHA-256 of {ROWS}: {digest}", class_="note")] if digest else []
    fields = (("License", holder.license), ("Published", holder.published), ("Contact", holder.contact))
    words = [tag("div", tag("dt", one), tag("dd", stated(text))) for one, text in fields]
    quote = tag("blockquote", tag("p", holder.citation or _citation(release, holder)), *mark)
    return join((quote, tag("dl", *words, class_="blocks")))


def _citation(release: Release, holder: Statements) -> str:
    about = release.description
    loss = loss_of(about)
    facts = f"epsilon = {rounded_up(loss.epsilon)}, delta = {shown(loss.delta)}, protecting {unit_of(about)}"
    name, title, year = holder.holder or "[holder]", holder.title or "[title]", holder.published[:4] or "n.d."
    made = f"made with Pointillist {about.versions.get('pointillist', '')}".strip()
    promise = f"under differential privacy ({facts})" if about.privacy.private else "with seeded noise, NOT PRIVATE"
    text = f"{name} ({year}): {title}. Synthetic data {promise}, {made}."
    return f"{text} {holder.url}".strip()


def how_to_verify(release: Release, evidence: Evidence | None) -> Html:
    """What can be checked and how, and what was found when the page was made.

    Args:
        release: the release.
        evidence: what is known about its files.
    """
    commands = tag("pre", COMMANDS, tabindex=0, role="region", aria_label="Commands")
    found = [] if evidence is None else [*_found(evidence)]
    return join((tag("p", VERIFYING), commands, *found, _made(release)))


def _found(evidence: Evidence) -> Sequence[Html]:
    signed = "The release is signed." if evidence.signed else "The release is not signed."
    text = f"When this page was made, {len(evidence.checks):,} checks passed. {signed} {TRUSTED}"
    rows = [(name, tag("code", digest)) for name, digest in evidence.digests.items()]
    files = data_table("Fingerprints of the files of the release", ("File", "SHA-256"), rows, 2)
    checks = data_table("Checks that passed", ("Check", "What was found"), evidence.checks, 2)
    return tag("p", text), files, disclosure("The checks", checks)


def _made(release: Release) -> Html:
    about = release.description
    settings = "; ".join(f"{key} = {value}" for key, value in about.method.settings.items())
    rows = [
        ("Method", about.method.name),
        ("Settings", settings or "none"),
        ("Workload", workload_in_words(release)),
        ("Seed of the post-processing", f"{about.seed}"),
        *((f"Version of {name}", version) for name, version in about.versions.items()),
    ]
    return disclosure("How it was made", data_table("Method and versions", ("What", "Value"), rows, 2))
