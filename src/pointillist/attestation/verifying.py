"""Everything about a release that can be checked without the private data, one line each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pointillist.attestation import ledger
from pointillist.attestation.discovered import check_discovered
from pointillist.attestation.envelope import (
    check_predicate,
    check_subjects,
    digests_of,
    manifest_of,
    opened,
    subjects_of,
)
from pointillist.attestation.evidence import Evidence
from pointillist.attestation.files import (
    ADDED_FILES,
    ATTESTATION,
    MANIFEST,
    MOST_SIGNED_JSON,
    OPTIONAL_FILES,
    RELEASE_FILES,
    Folder,
)
from pointillist.attestation.findings import Failed, Skipped, one_line, require
from pointillist.attestation.keys import public_key, require_cryptography
from pointillist.attestation.replaying import (
    check_columns,
    check_model,
    check_replay,
    check_replicates,
    check_rows,
    check_simulated,
)
from pointillist.attestation.tables import check_tables
from pointillist.attestation.transcript import check_facts, check_sensitivities, check_transcript
from pointillist.data.neighbours import Relation
from pointillist.errors import PointillistError

__all__ = ["Check", "Report", "verify"]

OK, FAILED, SKIPPED = "ok", "failed", "skipped"


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what was checked.
        status: ``"ok"``, ``"failed"`` or ``"skipped"``.
        reason: what was found, in a line.
    """

    name: str
    status: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All checks of a release.

    Attributes:
        checks: what was checked, in order.
        private: whether the release says that it is private; None if it could not be read.
    """

    checks: tuple[Check, ...]
    private: bool | None

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(one.status != FAILED for one in self.checks)

    def __getitem__(self, name: str) -> Check:
        """The check called ``name``."""
        return next(one for one in self.checks if one.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"ok": self.ok, "private": self.private, "checks": [asdict(one) for one in self.checks]}


Plan = list[tuple[str, Callable[[], str], tuple[str, ...]]]
"""The name of each check, what it does, and the checks that must have passed before it."""


def verify(
    folder: str | Path, public_key: str | Path | None = None, replay: bool = False, public: Any = None
) -> Report:
    """Check a release folder: its files, its signature, and what it says about itself. No private data is needed.

    Args:
        folder: the release.
        public_key: the PEM file of the key that must have signed it.
        replay: also run the method on the transcript, and compare the model and the rows.
        public: the public table that the release was made with, for the replay.
    """
    evidence = Evidence(Folder(folder))
    plan = [*_signed(evidence, public_key), *_described(evidence), *_replayed(evidence, replay, public)]
    checks = _run(plan)
    read = next(one for one in checks if one.name == "description")
    return Report(tuple(checks), evidence.about.privacy.private if read.status == OK else None)


def _signed(evidence: Evidence, key: str | Path | None) -> Plan:
    """The files as such."""
    folder = evidence.folder
    given = None if key is None else public_key(key)

    def signature() -> str:
        if not folder.has(ATTESTATION):
            require(given is None, f"a public key was given, but there is no {ATTESTATION}")
            raise Skipped("the release is not signed")
        require_cryptography()
        statement, signer = opened(folder.read(ATTESTATION, MOST_SIGNED_JSON), given)
        subjects = {one.get("name") for one in statement.get("subject") or () if isinstance(one, dict)}
        unsigned = _added_since(folder, subjects)
        check_subjects(statement, subjects_of(folder, folder.content(added=not unsigned)))
        check_predicate(statement, evidence.about)
        later = "".join(f"; {name} was added later and is not signed" for name in unsigned)
        who = "" if given else "; to know who signed, give the signer's key with --public-key"
        return f"files and privacy facts are as signed by the key {signer}{later}{who}"

    return [
        ("files", lambda: _check_files(folder), ()),
        ("manifest", lambda: _check_manifest(folder), ()),
        ("description", lambda: _check_description(evidence), ()),
        ("signature", signature, ()),
    ]


def _described(evidence: Evidence) -> Plan:
    """What the description says, and what the other files show of it."""
    return [
        ("noise", lambda: ledger.check_noise(evidence.about.privacy), ("description",)),
        ("ledger sum", lambda: ledger.check_sum(evidence.about.privacy), ("description",)),
        ("charges", lambda: ledger.check_charges(evidence.about.privacy), ("description",)),
        ("budget", lambda: ledger.check_conversion(evidence.about.privacy), ("description", "charges")),
        ("statement", lambda: ledger.check_statement(evidence.about), ("description", "ledger sum")),
        ("schema cost", lambda: ledger.check_schema_cost(evidence.about), ("description", "budget", "statement")),
        ("number of rows", lambda: check_facts(evidence.about, evidence.run_charges), ("description", "charges")),
        ("transcript", lambda: check_transcript(evidence.about, evidence.whole_log), ("description", "charges")),
        ("discovered values", lambda: check_discovered(evidence.about), ("description", "charges")),
        ("sensitivities", lambda: check_sensitivities(evidence.about, evidence.whole_log), ("transcript",)),
        ("columns", lambda: check_columns(evidence), ("transcript", "discovered values")),
        ("tables", lambda: check_tables(evidence), ("description",)),
        ("model", lambda: check_model(evidence), ("description",)),
        ("replicates", lambda: check_replicates(evidence), ("model",)),
    ]


def _replayed(evidence: Evidence, asked: bool, public: Any) -> Plan:
    """The replay, if it is asked for."""

    def when_asked(call: Callable[[], str]) -> Callable[[], str]:
        def checked() -> str:
            if not asked:
                raise Skipped("not asked for")
            return call()

        return checked

    # A method is only run with a budget and a number of rows that make sense: others may not let it end.
    sound = ("ledger sum", "number of rows", "transcript", "model")
    return [
        ("replayed model", when_asked(lambda: check_replay(evidence, public)), sound),
        ("replayed rows", when_asked(lambda: check_rows(evidence)), ("tables", "model")),
        ("replayed replicate", when_asked(lambda: check_simulated(evidence, public)), ("replayed model",)),
    ]


def _run(plan: Plan) -> list[Check]:
    """Make the checks one after the other; whatever goes wrong in one of them is its result."""
    done: dict[str, Check] = {}
    for name, call, needed in plan:
        missing = [other for other in needed if done[other].status != OK]
        if missing:
            status, reason = SKIPPED, f"needs the check {missing[0]!r} to pass"
        else:
            status, reason = _outcome(call)
        done[name] = Check(name, status, one_line(reason))
    return list(done.values())


def _outcome(call: Callable[[], str]) -> tuple[str, str]:
    try:
        return OK, call()
    except Skipped as skip:
        return SKIPPED, str(skip)
    except PointillistError as error:
        return FAILED, str(error)
    except Exception as error:  # a damaged or hostile file can fail in any way
        return FAILED, f"cannot be read ({type(error).__name__}: {one_line(error)[:160]})"


def _check_files(folder: Folder) -> str:
    names = folder.names()
    missing = [name for name in RELEASE_FILES if name not in names]
    require(not missing, f"missing: {', '.join(missing)}")
    known = (*RELEASE_FILES, *OPTIONAL_FILES, *ADDED_FILES, MANIFEST, ATTESTATION)
    for name in known:
        if name in names:
            folder.plain(name)
    unknown = [name for name in names if name not in known]
    shown = ", ".join(one_line(name)[:60] for name in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    require(not unknown, f"{len(unknown):,} not part of a release: {shown}")
    return f"the {len(RELEASE_FILES)} files of a release, and nothing unknown"


def _check_manifest(folder: Folder) -> str:
    if not folder.has(MANIFEST):
        raise Skipped("there is no manifest")
    written = folder.read(MANIFEST, MOST_SIGNED_JSON)
    unlisted = [name for name in ADDED_FILES if folder.has(name) and f'"{name}"'.encode() not in written]
    digests = digests_of(folder, folder.content(added=not unlisted))
    if written != manifest_of(digests):
        text = written.decode("utf-8", "replace")
        changed = [name for name, found in digests.items() if found["sha256"] not in text]
        raise Failed(f"not as in the manifest: {', '.join(changed)}" if changed else "the manifest was edited")
    later = "".join(f"; {name} was added later and is not listed" for name in unlisted)
    return f"the SHA-256 and the size of {len(digests)} files are as listed{later}"


def _added_since(folder: Folder, signed: Collection[Any]) -> list[str]:
    """The files that were added after a release was signed."""
    return [name for name in ADDED_FILES if folder.has(name) and name not in signed]


def _check_description(evidence: Evidence) -> str:
    about = evidence.about
    Relation(about.privacy.relation)
    require(0 <= about.seed < 2**63, "the seed is not a number of 63 bits")
    require(all(isinstance(one, str) for one in about.versions.values()), "the versions are not texts")
    workload = evidence.workload
    require(about.workload.get("size") == workload.size, "the workload has another size than its queries")
    return f"{one_line(about.method.name)[:60]}, {workload.describe()}"
