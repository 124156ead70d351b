"""What we think of the paper's claims, in sentences that stand only as long as the verdicts behind them.

A sentence has no figures. It names the claims that it rests on and the verdicts that allow it to be said. If the
results no longer give such a verdict, the page is not written until someone has changed the sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.claims import judge
from experiments.grid import Experiment, Key, Row
from pointillist.errors import InputError, Shown

__all__ = ["Basis", "Opinion", "written"]

Shown_ = Mapping[str, tuple[Experiment, dict[Key, Row]]]

YES, MIXED, NO = ("holds", "mostly holds"), ("mixed",), ("does not hold",)
"""The verdicts, from the best to the worst."""


@dataclass(frozen=True)
class Basis:
    """Claims that an opinion rests on.

    Attributes:
        experiment: the experiment that they belong to.
        beginning: how their texts begin.
        allowed: the verdicts with which the opinion may be said.
    """

    experiment: str
    beginning: str
    allowed: tuple[str, ...]

    def words(self, shown: Shown_) -> list[str]:
        """The verdicts of the claims; refused where one does not allow the opinion, or where there is no claim."""
        experiment, results = shown[self.experiment]
        claims = [claim for claim in experiment.claims if claim.text.startswith(self.beginning)]
        found = [judge(experiment, claim, results)[0] for claim in claims]
        strange = [word for word in found if word not in self.allowed] or ([] if found else ["no such claim"])
        if strange:
            rule = f"must be one of {', '.join(self.allowed)}, which an opinion in experiments/opinions.py rests on"
            raise InputError(f"verdict on {self.beginning!r}", Shown(strange[0]), rule, "change the opinion")
        return found

    def told(self, shown: Shown_) -> str:
        """The claims with their verdicts."""
        counts = Counter(self.words(shown))
        verdicts = ", ".join(word if count == len(list(counts.elements())) == 1 else f"{word}: {count}"
                             for word, count in counts.items())  # fmt: skip
        return f"{self.beginning} ({verdicts})"


@dataclass(frozen=True)
class Opinion:
    """A few sentences, and what they rest on."""

    text: str
    basis: tuple[Basis, ...]


def written(opinions: tuple[Opinion, ...], shown: Shown_) -> str:
    """The opinions as a list."""
    return "\n".join(_lines(opinions, shown))


def _lines(opinions: tuple[Opinion, ...], shown: Shown_) -> Iterator[str]:
    for opinion in opinions:
        yield f"- {opinion.text}"
        yield f"  *Rests on:* {'; '.join(basis.told(shown) for basis in opinion.basis)}."


OPINIONS: tuple[Opinion, ...] = ()
