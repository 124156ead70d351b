"""Ed25519 keys as PEM files. The package ``cryptography`` is loaded when a key is needed, not before."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from pointillist.checks import check
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["PASSWORD", "keyid_of", "make_keys", "private_key", "public_key", "raw_key", "require_cryptography"]

PASSWORD = "POINTILLIST_KEY_PASSWORD"
"""The environment variable with the password of a private key."""

MOST_PEM = 1 << 16


def require_cryptography() -> None:
    """Refuse to go on without the package that signs."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        rule = "must be installed to sign and to check signatures"
        raise InputError("cryptography", Shown("no such package"), rule, "pip install 'pointillist[sign]'") from None


def make_keys(path: str | Path, password: bytes | None = None) -> tuple[Path, Path]:
    """Make a key pair: the private key as a file that its owner alone can read, the public one next to it.

    Args:
        path: the file of the private key; the public one has the same name and ``.pub``.
        password: encrypts the private key.
    """
    require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    private, public = Path(path), Path(f"{path}.pub")
    for file in (private, public):
        check(not os.path.lexists(file), "key", str(file), "must not exist already", "choose another name")
    key = Ed25519PrivateKey.generate()
    hidden = NoEncryption() if password is None else BestAvailableEncryption(password)
    _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden), 0o600)
    try:
        _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    except InputError:
        private.unlink()
        raise
    return private, public


def private_key(path: str | Path, password: bytes | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM file, which nobody but its owner may be able to read.

    Args:
        path: the file.
        password: what it was encrypted with.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read(path, "key")
    if os.name == "posix":
        mode = stat.S_IMODE(Path(path).stat().st_mode)
        rule = f"must be readable by its owner alone (its mode is {mode:04o})"
        check(mode & 0o077 == 0, "key", str(path), rule, f"run chmod 600 {path}")
    try:
        key = load_pem_private_key(content, password)
    except TypeError:
        needed = password is None
        rule = "must be opened with its password" if needed else "must be opened without a password: it has none"
        hint = f"give a file with it, or set {PASSWORD}" if needed else f"leave the file out, and unset {PASSWORD}"
        raise InputError("key", str(path), rule, hint) from None
    except (ValueError, UnsupportedAlgorithm):
        rule = "must be a private key in PEM form" + ("" if password is None else ", with this password")
        raise InputError("key", str(path), rule, "make one with `pointillist keygen FILE`") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("key", str(path), "must be an Ed25519 key", "make one with `pointillist keygen FILE`")
    return key


def public_key(path: str | Path) -> Ed25519PublicKey:
    """The public key in a PEM file.

    Args:
        path: the file.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _read(path, "public_key")
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        rule = "must be a public key in PEM form"
        raise InputError("public_key", str(path), rule, "give the .pub file of the signer") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("public_key", str(path), "must be an Ed25519 key", "give the .pub file of the signer")
    return key


def raw_key(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes_raw()


def keyid_of(raw: bytes) -> str:
    """The name of a public key: the SHA-256 of its 32 bytes."""
    return hashlib.sha256(raw).hexdigest()


def _read(path: str | Path, name: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_PEM + 1)
    except OSError as error:
        rule = f"must be a file that can be read ({error.strerror})"
        raise InputError(name, str(path), rule, "check the path") from None
    check(len(content) <= MOST_PEM, name, str(path), "must be a PEM file of one key", "check the path")
    return content


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        rule = f"must be a new file in a folder that can be written to ({error.strerror})"
        raise InputError("key", str(path), rule, "choose another name") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
