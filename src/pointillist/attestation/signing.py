"""Signing a release: the manifest and the attestation are added to its folder, nothing else is touched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pointillist.attestation.envelope import (
    digests_of,
    manifest_of,
    predicate_of,
    sealed,
    statement_of,
    subjects_of,
)
from pointillist.attestation.evidence import Evidence
from pointillist.attestation.files import ATTESTATION, MANIFEST, Folder
from pointillist.attestation.keys import keyid_of, private_key, raw_key
from pointillist.attestation.verifying import verify
from pointillist.checks import check
from pointillist.errors import InputError

__all__ = ["Signed", "sign"]

ABOUT_SIGNING = ("manifest", "signature")


@dataclass(frozen=True)
class Signed:
    """What was signed.

    Attributes:
        folder: the release.
        keyid: the SHA-256 of the public key.
        private: whether the release says that it is private.
    """

    folder: Path
    keyid: str
    private: bool


def sign(folder: str | Path, key: str | Path, password: bytes | None = None, force: bool = False) -> Signed:
    """Write ``manifest.json`` and ``attestation.json`` into a complete release that passes its checks.

    Args:
        folder: the release.
        key: the PEM file of an Ed25519 private key.
        password: the password of the key.
        force: replace an earlier manifest and signature.
    """
    place = Folder(folder)
    loaded = private_key(key, password)
    for name in (ATTESTATION, MANIFEST):
        rule = f"must not be signed already (it has {name})"
        check(force or not place.has(name), "release", str(folder), rule, "replace the signature with --force")
    for one in verify(folder).checks:
        if one.status == "failed" and one.name not in ABOUT_SIGNING:
            rule = f"must pass its checks to be signed ({one.name}: {one.reason})"
            raise InputError("release", str(folder), rule, "run `pointillist verify` on it")
    place.write(MANIFEST, manifest_of(digests_of(place, place.content())))
    about = Evidence(place).about
    statement = statement_of(subjects_of(place, place.content()), predicate_of(about))
    place.write(ATTESTATION, sealed(statement, loaded))
    return Signed(place.path, keyid_of(raw_key(loaded.public_key())), about.privacy.private)
