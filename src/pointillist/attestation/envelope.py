"""What is signed and how: an in-toto Statement v1 in a DSSE envelope.

The statement names every file of the release by its digest and repeats the privacy facts of its description. The
envelope signs the statement together with its type (``PAE``), so that a signature for one type of payload is worth
nothing for another.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from pointillist.attestation.files import ATTESTATION, MANIFEST, Folder, canonical, read_json
from pointillist.attestation.findings import Failed, require
from pointillist.attestation.keys import keyid_of, raw_key
from pointillist.release import Description

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = [
    "PAYLOAD_TYPE",
    "PREDICATE_TYPE",
    "check_predicate",
    "check_subjects",
    "digests_of",
    "manifest_of",
    "opened",
    "pae",
    "predicate_of",
    "sealed",
    "statement_of",
    "subjects_of",
]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:pointillist:release:privacy:v1"
MOST_SIGNATURES = 16

Digests = dict[str, dict[str, Any]]
"""For each file its SHA-256 and its size."""


def pae(payload_type: str, body: bytes) -> bytes:
    """DSSE's pre-authentication encoding: the type and the body, each after its length."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def manifest_of(digests: Digests) -> bytes:
    """The content of ``manifest.json``."""
    return canonical({"format": 1, "files": digests})


def predicate_of(about: Description) -> dict[str, Any]:
    """The privacy facts of a release, as they are signed."""
    privacy = about.privacy
    unit = {} if privacy.unit is None else {"unit": {"name": privacy.unit.name, "maxRows": privacy.unit.max_rows}}
    return unit | {
        "private": privacy.private,
        "relation": privacy.relation,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "accounting": privacy.accounting,
        "rho": privacy.rho,
        "rhoSpent": privacy.rho_spent,
        "noise": privacy.noise,
        "statement": privacy.statement,
        "method": {"name": about.method.name, "grouping": about.method.grouping},
        "rows": about.rows,
        "versions": about.versions,
    }


def statement_of(digests: Digests, predicate: dict[str, Any]) -> dict[str, Any]:
    """The in-toto statement about files, given by their digests."""
    subjects = [{"name": name, "digest": {"sha256": found["sha256"]}} for name, found in sorted(digests.items())]
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }


def sealed(statement: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The content of ``attestation.json``: the signed statement. The public key goes with the signature."""
    body = canonical(statement)
    raw = raw_key(key.public_key())
    signature = {
        "keyid": keyid_of(raw),
        "sig": base64.b64encode(key.sign(pae(PAYLOAD_TYPE, body))).decode("ascii"),
        "publicKey": base64.b64encode(raw).decode("ascii"),
    }
    envelope = {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(body).decode("ascii")}
    return canonical(envelope | {"signatures": [signature]})


def opened(content: bytes, key: Ed25519PublicKey | None) -> tuple[dict[str, Any], str]:
    """The statement of an envelope, after its signature was checked, and the name of the key that made it.

    With a ``key``, one of the signatures must be that key's. Without one, every signature must be that of the public
    key that comes with it: this shows that nothing was changed since, not who signed.
    """
    envelope = read_json(content, ATTESTATION)
    require(isinstance(envelope, dict), f"{ATTESTATION} is not an envelope")
    kind, payload, signatures = (envelope.get(name) for name in ("payloadType", "payload", "signatures"))
    require(kind == PAYLOAD_TYPE, f"the envelope does not hold a payload of the type {PAYLOAD_TYPE}")
    listed = isinstance(signatures, list) and 0 < len(signatures) <= MOST_SIGNATURES
    require(listed and isinstance(payload, str), f"{ATTESTATION} needs a payload and 1 to {MOST_SIGNATURES} signatures")
    body = _bytes(payload, "payload")
    signer = _signer(pae(PAYLOAD_TYPE, body), [one for one in signatures or () if isinstance(one, dict)], key)
    require(
        signer is not None, "the signature does not fit" + ("" if key is None else " the public key that was given")
    )
    statement = read_json(body, "the statement")
    require(isinstance(statement, dict), "the payload is not a statement")
    return statement, signer or ""


def _signer(signed: bytes, signatures: list[dict[str, Any]], key: Ed25519PublicKey | None) -> str | None:
    """The name of the key whose signature fits; None if there is none."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    found = []
    for one in signatures:
        try:
            made_by = key or Ed25519PublicKey.from_public_bytes(_bytes(one.get("publicKey"), "public key"))
            made_by.verify(_bytes(one.get("sig"), "signature"), signed)
        except (InvalidSignature, ValueError):
            if key is None:
                return None
            continue
        name = keyid_of(raw_key(made_by))
        require(one.get("keyid") in (None, "", name), "the signature names another key than the one that made it")
        found.append(name)
    return found[0] if found else None


def _bytes(text: Any, name: str) -> bytes:
    """Decoded base64, in either alphabet."""
    require(isinstance(text, str), f"the envelope has no {name}")
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise Failed(f"the {name} of the envelope is not base64") from None


def digests_of(folder: Folder, names: tuple[str, ...]) -> Digests:
    """The digests of some files of a folder."""
    return {name: folder.digest(name) for name in names}


def check_subjects(statement: dict[str, Any], digests: Digests) -> None:
    """Compare the files that a statement is about with those of a folder."""
    require(statement.get("_type") == STATEMENT_TYPE, "the payload is not an in-toto statement of version 1")
    require(statement.get("predicateType") == PREDICATE_TYPE, "the statement is not about the privacy of a release")
    signed, wanted = statement.get("subject"), statement_of(digests, {})["subject"]
    listed = signed if isinstance(signed, list) else []
    changed = [one["name"] for one in wanted if one not in listed]
    require(not changed, f"changed since it was signed: {', '.join(changed)}")
    require(listed == wanted, "more files were signed than a release has")


def check_predicate(statement: dict[str, Any], about: Description) -> None:
    """Compare the privacy facts of a statement with those of a description."""
    given = statement.get("predicate")
    facts = given if isinstance(given, dict) else {}
    for name, value in predicate_of(about).items():
        same = name in facts and canonical(facts[name]) == canonical(value)
        require(same, f"the signed {name} is not that of release.json")


def subjects_of(folder: Folder, files: tuple[str, ...]) -> Digests:
    """What a statement is about: the files of the release, and its manifest."""
    return digests_of(folder, (*files, MANIFEST))
