"""What answers need of a release."""

from __future__ import annotations

from typing import Any, Protocol

from pointillist.answers.replicates import Replicates
from pointillist.data.schema import Schema
from pointillist.framework import Family, Log
from pointillist.queries.workload import Workload

__all__ = ["Released"]


class Released(Protocol):
    """A release, as far as answers look at it: differentially private values only."""

    @property
    def family(self) -> Family[Any]:
        """The family of the model."""

    @property
    def params(self) -> Any:
        """The model."""

    @property
    def log(self) -> Log:
        """The transcript."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    @property
    def workload(self) -> Workload:
        """The queries that were wanted."""

    @property
    def replicates(self) -> Replicates | None:
        """Models of simulated runs, if there are any."""
