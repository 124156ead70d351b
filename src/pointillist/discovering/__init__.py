"""Schemas made from private data by charged measurements."""

from pointillist.discovering.draft import PrivateDraft, prepare_draft
from pointillist.discovering.spending import private_schema

__all__ = ["PrivateDraft", "prepare_draft", "private_schema"]
