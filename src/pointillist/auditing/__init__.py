"""An empirical check of the privacy promise: runs on made-up neighbouring tables, and what they prove."""

from pointillist.auditing.report import Audit, Finding, audit

__all__ = ["Audit", "Finding", "audit"]
