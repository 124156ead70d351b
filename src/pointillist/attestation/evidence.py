"""The parts of a release folder, each read when it is first asked for, within bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.answers import Replicates
from pointillist.attestation.files import Folder, read_json
from pointillist.attestation.findings import Failed, require
from pointillist.attestation.ledger import BEFORE
from pointillist.checks import check
from pointillist.data.domain import Domain
from pointillist.data.schema import Schema
from pointillist.families.saved import load_family
from pointillist.framework import Family, Log
from pointillist.privacy.ledger import Entry
from pointillist.queries.cells import Cells
from pointillist.queries.enumerating import MOST_ANSWERED, MOST_ENUMERATED
from pointillist.queries.formulas import columns_of
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.workload import Workload
from pointillist.release import FORMAT, Description, format1
from pointillist.release.folder import MODEL, REFINED, TRANSCRIPT, Refined, listed_schema, refined_of
from pointillist.release.place import REPLICATES, SPEC
from pointillist.release.replicating import read_replicates
from pointillist.release.transcript import log_of

__all__ = ["Evidence"]

MOST_COLUMNS = 10_000
MOST_PAIRS = 30_000_000
"""The most pairs of a code and an interval, or of two codes, that the queries of a release may need."""
MOST_LOOKED_AT = 10 * MOST_ANSWERED
"""The most pairs of a combination of codes and a condition, as well."""


class Evidence:
    """What a folder says, before anything of it is believed.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The content of the description."""
        spec = read_json(self.folder.read(SPEC), SPEC)
        require(isinstance(spec, dict), f"{SPEC} is not a description")
        written = spec.get("format")
        known = isinstance(written, int) and not isinstance(written, bool) and written in (1, FORMAT)
        check(known, "release: format", written, f"must be 1 or {FORMAT}", "update pointillist")
        return dict(spec)

    @property
    def first_format(self) -> bool:
        """Whether the folder has the format of the first versions."""
        return bool(self.spec["format"] == 1)

    @cached_property
    def about(self) -> Description:
        """The description."""
        spec = self.spec
        entries = format1.upgraded(spec, format1.family_of(spec, self.model_arrays)) if self.first_format else spec
        return Description.from_dict(entries)

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        columns = self.about.schema.get("column")
        few = isinstance(columns, list) and len(columns) <= MOST_COLUMNS
        require(few, f"the schema does not have 1 to {MOST_COLUMNS:,} columns")
        return Schema.from_dict(self.about.schema)

    @cached_property
    def workload(self) -> Workload:
        """The queries that were wanted."""
        _require_small(self.about.workload.get("queries"), self.schema.domain)
        return Workload.from_dict(self.about.workload, self.schema.domain)

    @cached_property
    def log(self) -> Log:
        """The transcript."""
        arrays, domain, facts = self.folder.arrays(TRANSCRIPT), self.schema.domain, self.about.facts
        if self.first_format:
            log = format1.log_of(arrays, self.spec, domain, facts)
        else:
            _require_small(json.loads(str(arrays["asked"])), domain)
            log = log_of(arrays, domain, facts)
        log.start = dict(self.about.method.start)
        return log

    @cached_property
    def refined(self) -> Refined | None:
        """What was measured of fine columns before the run."""
        about, arrays = self.about, self.folder.arrays(TRANSCRIPT)
        measured = any(name.startswith(REFINED) for name in arrays)
        if self.listed is None or (about.discovered is not None and not measured):
            require(not measured, "no column was fine, but some were measured")
            return None
        require(measured, "columns were to be measured or discovered, but neither was done")
        _require_small(json.loads(str(arrays[REFINED + "asked"])), self.listed.domain)
        return refined_of(about, arrays)

    @cached_property
    def listed(self) -> Schema | None:
        """The columns as they were given, with the values that were discovered."""
        return listed_schema(self.about)

    @property
    def whole_log(self) -> Log:
        """All that was learned and paid for: of fine columns first, then by the run."""
        before = [] if self.refined is None else self.refined.log.rounds
        return Log(self.log.facts, [*before, *self.log.rounds])

    @cached_property
    def run_charges(self) -> tuple[Entry, ...]:
        """The charges of the run itself."""
        before = 0 if self.refined is None else len(self.refined.log.measurements)
        return tuple(entry for entry in self.about.privacy.ledger if entry.label not in BEFORE)[before:]

    @cached_property
    def model_arrays(self) -> dict[str, np.ndarray]:
        """The parameters of the model, as they are saved."""
        return self.folder.arrays(MODEL)

    @cached_property
    def replicates(self) -> Replicates:
        """Models of simulated runs."""
        arrays, total = self.folder.arrays(REPLICATES), float(self.log.estimated_total)
        return read_replicates(arrays, self.about.family, self.schema, total)

    @cached_property
    def model(self) -> tuple[Family[Any], Any]:
        """The family of the model, and its parameters."""
        family = load_family(self.about.family, self.schema.domain, self.model_arrays)
        return family, family.from_arrays(self.model_arrays)


def _require_small(specs: Any, domain: Domain) -> None:
    """Refuse queries whose sensitivity would take too long or too much memory to compute."""
    require(isinstance(specs, list), "the queries are not a list")
    pairs = looked_at = 0.0
    for spec in specs:
        while isinstance(spec, Mapping) and spec.get("kind") == Cells.kind:
            spec = spec.get("of")
        if not isinstance(spec, Mapping):
            raise Failed("the queries are not tables of entries")
        pairs += _pairs(spec, domain)
        looked_at += _looked_at(spec, domain)
        require(pairs <= MOST_PAIRS, "the queries have too many intervals for their sensitivity to be recomputed")
        require(looked_at <= MOST_LOOKED_AT, "the queries have too many conditions to be looked at again")


def _pairs(spec: Mapping[str, Any], domain: Domain) -> float:
    """Pairs of a code and an interval, or of two codes, of products; of scores instead of codes, of halfspaces."""
    bounds = spec.get("intervals")
    if not isinstance(bounds, list):
        return 0
    if spec.get("kind") == Halfspaces.kind:
        scores = 1 + sum(max(0, *one) for one in spec["weights"] if one is not None)
        return float(scores * len(bounds) + min(scores, 2 * len(bounds) + 1) ** 2)
    sizes = [domain.sizes[domain.index(name)] for name in spec["attributes"]]
    widths = [len(one) if isinstance(one, list) else math.inf for one in bounds]
    return sum(size * max(size, width) for size, width in zip(sizes, widths, strict=True))


def _looked_at(spec: Mapping[str, Any], domain: Domain) -> float:
    """Pairs of a combination of codes and a condition that the sensitivity of conditions looks at."""
    formulas = spec.get("formulas")
    if not isinstance(formulas, list):
        return 0
    cells = domain.cells_of(sorted({domain.index(name) for one in formulas for name in columns_of(one)}))
    pairs = cells * len(formulas)
    return float(pairs) if cells <= MOST_ENUMERATED and pairs <= MOST_ANSWERED else 0
