"""Reports on releases: a page to publish, a page for the data holder alone, and a record for a registry."""

from pointillist.reports.citing import Evidence
from pointillist.reports.holder import holder_report
from pointillist.reports.public import public_report
from pointillist.reports.registry import registry_record, to_yaml, unfilled
from pointillist.reports.statements import Statements

__all__ = ["Evidence", "Statements", "holder_report", "public_report", "registry_record", "to_yaml", "unfilled"]
