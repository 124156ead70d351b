"""The promise of a release in words: plainly, exactly, and block by block as NIST SP 800-226 asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pointillist.data.neighbours import Relation, meaning_of
from pointillist.privacy.ledger import rounded_up
from pointillist.release import Description, Release
from pointillist.reports.markup import Html, join, paragraphs, tag
from pointillist.reports.statements import Statements

__all__ = ["Loss", "blocks", "exactly", "guess", "loss_of", "plainly", "shown", "stated", "unit_of"]


POWERS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


@dataclass(frozen=True)
class Loss:
    """What a release guarantees, with its schema if that was paid for.

    Attributes:
        epsilon, delta: the parameters.
    """

    epsilon: float
    delta: float


def loss_of(about: Description) -> Loss:
    """The parameters of everything that the release shows.

    Args:
        about: the description of the release.
    """
    both = about.privacy.with_schema
    return Loss(about.privacy.epsilon, about.privacy.delta) if both is None else Loss(both.epsilon, both.delta)


def shown(value: float) -> str:
    """An epsilon or a delta, rounded up; small ones as a power of ten.

    Args:
        value: the parameter.
    """
    number, _, power = rounded_up(value).partition("e")
    raised = str(int(power)).translate(POWERS) if power else ""
    return f"{number} \u00d7 10{raised}" if power else number


def unit_of(about: Description) -> str:
    """What is protected, in a few words.

    Args:
        about: the description of the release.
    """
    unit = about.privacy.unit
    return "one row" if unit is None else f"all rows of one {unit.name}"


def guess(loss: Loss) -> float:
    """The largest probability with which two equally likely tables that are neighbours can be told apart.

    Under (epsilon, delta)-differential privacy the total variation distance of the releases of two neighbours is at
    most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), and the best guess is right with probability (1 + distance) / 2.

    Args:
        loss: the parameters.
    """
    return (1 + loss.delta * math.exp(-loss.epsilon)) / (1 + math.exp(-loss.epsilon))


def plainly(about: Description) -> Html:
    """The promise for readers who do not know differential privacy.

    Args:
        about: the description of the release.
    """
    loss, unit = loss_of(about), unit_of(about)
    factor, odds = rounded_up(math.exp(loss.epsilon)), math.ceil(1000 * guess(loss)) / 10
    secret = (
        "who knows every other row of the table and has two equally likely candidates for the values of this row"
        if about.privacy.relation == Relation.REPLACE.value
        else f"who knows everything else in the table and wonders, with even odds, whether {unit} is in it"
    )
    return join(
        (
            tag(
                "p",
                f"Random noise was added to limit how much this release can depend on the data of {unit}. "
                "Whatever somebody already knows, and whatever they compute from this release, now or later, that data "
                f"can change the probability of any conclusion by a factor of at most {factor} (this is e to the power "
                f"of epsilon, {rounded_up(loss.epsilon)}), apart from a remainder of at most {shown(loss.delta)} "
                "(delta).",
            ),
            tag(
                "p",
                f"For example, somebody {secret} is right with a probability of at most {odds:.1f} % after "
                "reading this release, instead of 50 % before.",
            ),
            tag(
                "p",
                "The promise is not that nothing can be learned about people. What the release teaches about the whole "
                "population, such as that a habit causes a disease, can be applied to anybody, whether or not they are "
                "in the table.",
            ),
        )
    )


def exactly(release: Release) -> Html:
    """The promise as mathematics, and the statement of the release.

    Args:
        release: the release.
    """
    about = release.description
    loss, privacy = loss_of(about), about.privacy
    power = tag("sup", rounded_up(loss.epsilon))
    formula = ("Pr[M(P) \u2208 S] \u2264 e", power, " \u00b7 Pr[M(P\u2032) \u2208 S] + ", shown(loss.delta))
    relation = meaning_of(Relation(privacy.relation), privacy.unit)
    return join(
        (
            tag(
                "p",
                "Let M be the run that made this release. For any two neighbouring tables P and P\u2032 and any set S "
                "of releases,",
            ),
            tag("blockquote", tag("p", *formula, class_="exact")),
            tag("p", f"Neighbours, relation \u201c{privacy.relation}\u201d: {relation}."),
            tag("pre", release.statement, tabindex=0, role="region", aria_label="The statement of the release"),
        )
    )


def stated(text: str, topic: str = "") -> Html:
    """What the holder says, marked as such, or that they say nothing.

    Args:
        text: the holder's words; may be empty.
        topic: what they are about, where nothing else says it.
    """
    if not text:
        return tag(
            "p", f"{topic}: not stated by the holder." if topic else "Not stated by the holder.", class_="unstated"
        )
    said = f"{topic}, as the holder states:" if topic else "As the holder states:"
    return tag("div", tag("p", said, class_="by"), paragraphs(text), class_="stated")


def blocks(release: Release, holder: Statements, utility: str) -> Html:
    """The blocks of an evaluation after NIST SP 800-226, each from the release, from the holder, or from both.

    Args:
        release: the release.
        holder: what the holder states.
        utility: what is known about the errors of the answers.
    """
    about = release.description
    entries: Sequence[tuple[str, str, str, str]] = (
        ("Privacy parameters", _parameters(about), "Why this budget", holder.justification),
        ("Unit of privacy", _unit(about), "", ""),
        ("Mechanisms", _mechanisms(release), "", ""),
        ("Accounting", _accounting(about), "Other releases of the same data", holder.further_releases),
        ("Utility", utility, "", ""),
        ("Bias", BIAS, "Biases of the data and of their collection", holder.bias),
        ("Trust and threat model", THREATS, "Whom to protect against", holder.threats),
        ("Implementation", _implementation(about), "", ""),
        ("Before the run", _before(about), "Cleaning, exploring, choosing settings", holder.tuning),
        ("Access", ACCESS, "Who sees the release and the real data", holder.access),
        ("Security", "", "How the real data are kept", holder.security),
        ("Data collection", "", "How, when and from whom", holder.collection),
    )
    rows = []
    for name, text, topic, words in entries:
        known = [paragraphs(text)] if text else []
        said = [stated(words, topic)] if topic else []
        rows.append(tag("div", tag("dt", name), tag("dd", *known, *said)))
    return tag("dl", *rows, class_="blocks")


def _parameters(about: Description) -> str:
    loss, privacy = loss_of(about), about.privacy
    text = f"Epsilon is {rounded_up(loss.epsilon)}, delta is {shown(loss.delta)}. Smaller is safer."
    if privacy.with_schema is not None:
        both = privacy.with_schema
        own = f"({rounded_up(privacy.epsilon)}, {shown(privacy.delta)})"
        schema = f"({rounded_up(both.schema_epsilon)}, {shown(both.schema_delta)})"
        text += f" This counts the run itself, {own}, and the list of columns and values, which cost {schema}."
    if privacy.delta_shown is not None:
        text += (
            f" Of delta, {shown(privacy.delta_shown)} is the probability with which a value appears that only one of "
            "those who are protected has, in columns whose values the run has discovered."
        )
    if about.total * loss.delta >= 1:
        text += (
            " Warning: delta is not below 1 over the number of rows, so it allows the values of some person to appear."
        )
    return text


def _unit(about: Description) -> str:
    privacy = about.privacy
    text = meaning_of(Relation(privacy.relation), privacy.unit)
    text = f"{text[0].upper()}{text[1:]}."
    if privacy.unit is None:
        text += (
            " Somebody with several rows, or a household, is protected less: k rows together have k squared times the "
            "rho of one."
        )
    return text


def _mechanisms(release: Release) -> str:
    about = release.description
    kinds = sorted({entry.mechanism for entry in about.privacy.ledger})
    used = " and ".join(
        {"discrete Gaussian": "discrete Gaussian noise on whole counts"}.get(one, f"the {one}") for one in kinds
    )
    return (
        f"The method \u201c{about.method.name}\u201d used {used or 'no mechanism'}, {len(about.privacy.ledger):,} "
        f"times in all. Noise: {about.privacy.noise}. A model was fitted to the noisy results, and the rows were drawn "
        "from the model; neither used the real table again."
    )


def _accounting(about: Description) -> str:
    privacy = about.privacy
    name = "zero-concentrated differential privacy (zCDP)" if privacy.accounting == "zCDP" else "Gaussian noise"
    return (
        f"Charges are added up as rho, in the account of {name}: {privacy.rho_spent:.6g} of {privacy.rho:.6g} was "
        "spent. Each charge was booked before the real table was read. Other releases from the same table add to the "
        "loss."
    )


BIAS = (
    "Noise is the same for large and for small groups, so small groups have larger relative errors. Counts cannot be "
    "below 0 and shares add up to 1, which makes very small counts too large on average and takes it from larger ones. "
    "Ties that were not measured tend to be too weak. Biases of the real data are kept."
)
THREATS = (
    "Central model: the holder is trusted with the real table and with running the program. Anybody else may be an "
    "adversary, with the whole release, the source code and any other knowledge, even of every other row. They have "
    "not seen the run itself: its memory, its timing or its messages."
)
ACCESS = "The release may be read, copied and combined with anything by anybody, without any further loss of privacy."


def _implementation(about: Description) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
    return (
        f"Pointillist, with {versions}. Noise is drawn on whole numbers by exact samplers, so that no low bits of "
        "floating-point numbers leak. Running time and memory of the run are not covered."
    )


def _before(about: Description) -> str:
    if about.privacy.with_schema is not None:
        text = "The list of columns and values was made from the real table by charged measurements."
    else:
        text = (
            "The list of columns, values and bounds counts as public: a person has declared that it was not taken from "
            "the real table, or may be published."
        )
    if about.discovered:
        text += " The values of some columns are not part of it: the run has discovered them by charged measurements."
    if about.public is not None:
        text += f" A public table of {about.public.rows:,} rows was used as well."
    return f"{text} Choosing settings by looking at the real table is not covered by the guarantee."
