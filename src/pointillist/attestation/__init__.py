"""Releases that can be checked offline: signed by their maker, verified by anyone, replayed without the data."""

from pointillist.attestation.keys import make_keys
from pointillist.attestation.signing import Signed, sign
from pointillist.attestation.verifying import Check, Report, verify

__all__ = ["Check", "Report", "Signed", "make_keys", "sign", "verify"]
