"""What we think of the paper's claims, in sentences that stand only as long as the verdicts behind them.

A sentence has no figures. It names the claims that it rests on and the verdicts that allow it to be said. If the
results no longer give such a verdict, the page is not written until someone has changed the sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.claims import Selected, judge
from pointillist.errors import InputError, Shown

__all__ = ["Basis", "Opinion", "written"]

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

    def verdicts(self, shown: Selected) -> dict[str, str]:
        """The claims with their verdicts; refused where one does not allow the opinion, or where there is no claim."""
        experiment, results = shown[self.experiment]
        claims = [claim for claim in experiment.claims if claim.text.startswith(self.beginning)]
        found = {claim.text: judge(experiment, claim, results)[0] for claim in claims}
        strange = [word for word in found.values() if word not in self.allowed] or ([] if found else ["no such claim"])
        if strange:
            rule = f"must be one of {', '.join(self.allowed)}, which an opinion in experiments/opinions.py rests on"
            raise InputError(f"verdict on {self.beginning!r}", Shown(strange[0]), rule, "change the opinion")
        return found

    def told(self, shown: Selected) -> str:
        """The claims with their verdicts."""
        verdicts = self.verdicts(shown)
        if len(verdicts) == 1:
            ((text, word),) = verdicts.items()
            return f"{text} ({word})"
        return (
            f"{self.beginning} ({', '.join(f'{word}: {count}' for word, count in Counter(verdicts.values()).items())})"
        )


@dataclass(frozen=True)
class Opinion:
    """A few sentences, and what they rest on."""

    text: str
    basis: tuple[Basis, ...]


def written(opinions: tuple[Opinion, ...], shown: Selected) -> str:
    """The opinions as a list."""
    return "\n".join(_lines(opinions, shown))


def _lines(opinions: tuple[Opinion, ...], shown: Selected) -> Iterator[str]:
    for opinion in opinions:
        yield f"- {opinion.text}"
        yield f"  *Rests on:* {'; '.join(basis.told(shown) for basis in opinion.basis)}."


OPINIONS = (
    Opinion(
        "**PEP is sound on small tables.** By query it beats both kinds of MWEM on ADULT (reduced): the paper's, "
        "which may select a query again, and the one that selects no query twice. On the reduced ACS tables MWEM is "
        "about as good.",
        (Basis("main", "PEP beats MWEM, may repeat on ADULT (reduced)", YES),
         Basis("main", "PEP beats MWEM on ADULT (reduced)", YES),
         Basis("main", "PEP beats MWEM on the reduced ACS from epsilon 0.2 on", MIXED),
         Basis("main", "PEP performs like MWEM on the reduced ACS", YES)),
    ),
    Opinion(
        "**GEM is not better than MWEM everywhere.** On ADULT (reduced) it beats the paper's MWEM. It is not "
        "reliably ahead of MWEM that selects no query twice. For a table that fits a histogram, MWEM and PEP need "
        "no GPU.",
        (Basis("main", "GEM beats MWEM, may repeat on the small tables", YES),
         Basis("main", "GEM beats MWEM on the small tables", MIXED)),
    ),
    Opinion(
        "**GEM is the best of the paper's methods on wide tables.** It beats RAP-softmax there, and DualQuery is "
        "far behind wherever it ran. On ADULT\\* and LOANS the lead over RAP-softmax is one of the max error alone. "
        "RAP-softmax had a smaller part of its grid than GEM, so some of its distance may be lack of tuning.",
        (Basis("main", "GEM beats RAP-softmax on ADULT and ACS", YES),
         Basis("main", "GEM beats DualQuery on the small tables", YES),
         Basis("adult_loans", "GEM beats RAP-softmax: max", YES),
         Basis("adult_loans", "GEM beats RAP-softmax: mean", MIXED)),
    ),
    Opinion(
        "**Do not use RAP without the softmax.** This is as clear here as in the paper.",
        (Basis("rap", "RAP-softmax beats RAP", YES), Basis("adult_loans", "RAP-softmax beats RAP", YES)),
    ),
    Opinion(
        "**Measure whole marginals.** It lowers the errors of GEM nearly everywhere, with our version of it. The "
        "paper leaves it to an appendix; here it is the default.",
        (Basis("marginal_trick", "by marginal (our defaults) beats by query (at its best)", YES),),
    ),
    Opinion(
        "**HDMM is a stronger baseline than the paper suggests.** With a better strategy, an exact account of its "
        "noise and a projection of its answers, GEM by marginal is not ahead of it in the mean error, and not "
        "reliably in the max error.",
        (Basis("hdmm", "GEM by marginal (our defaults) beats HDMM, projected: max", MIXED),
         Basis("hdmm", "GEM by marginal (our defaults) beats HDMM, projected: mean", NO)),
    ),
    Opinion(
        "**Reuse past measurements in MWEM.** Both kinds of MWEM are much better with them.",
        (Basis("past", "MWEM, may repeat beats MWEM, no past queries", YES),
         Basis("past", "MWEM beats MWEM, no past queries", YES)),
    ),
    Opinion(
        "**A close public table helps a lot**, whichever method uses it. With our defaults PMW-Pub makes more of it "
        "than GEM-Pub on some tables, and they are alike on others; with the best number of rounds for each epsilon, "
        "which a user cannot know, they are alike on ADULT.",
        (Basis("public_near", "GEM-Pub beats GEM without public data", YES),
         Basis("public_near", "PMW-Pub beats GEM without public data", YES),
         Basis("public_near", "GEM-Pub performs like PMW-Pub (our defaults)", (*MIXED, *NO)),
         Basis("public_near", "GEM-Pub performs like PMW-Pub on ADULT, each at its best", YES)),
    ),
    Opinion(
        "**The limit of insufficient support is real.** PMW-Pub and PEP-Pub stay at or above the best-mixture error "
        "of a public table, whatever the budget. GEM-Pub is not bound by it. By what factor GEM-Pub is better says "
        "more about the public table than about the methods: it can be far smaller or far larger than the one in "
        "the paper.",
        (Basis("support", "PMW-Pub cannot get below the best mixture", YES),
         Basis("support", "PEP-Pub cannot get below the best mixture", YES),
         Basis("support", "GEM-Pub beats PMW-Pub (our defaults)", YES),
         Basis("support", "at epsilon 1 GEM-Pub has a max error 9.23 times smaller than PMW-Pub (our", MIXED)),
    ),
    Opinion(
        "**But do not count on a poor public table.** By query and at its best, GEM-Pub beats GEM with such tables "
        "too, as the paper says. With our defaults, which measure whole marginals, it is not reliably better than "
        "GEM without public data. If you doubt that your public table has the right records, leave it out, or use "
        "`auto`, which decides from its measurements whether to use it.",
        (Basis("support", "GEM-Pub beats GEM without public data (by query, each at its best)", YES),
         Basis("support", "GEM-Pub beats GEM without public data (our defaults): max", (*MIXED, *NO))),
    ),
    Opinion(
        "**Batch size and resampling are details.** Neither changes the max error reliably.",
        (Basis("batch", "B = 1,000 beats B = 100: max", MIXED),
         Basis("resample", "resampling makes little difference", MIXED)),
    ),
)  # fmt: skip
"""From what matters most to what matters least, roughly in the order of the page."""
