"""Releases that the tests of reports share; each is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reports.made import fine_release, hostile_release, wide_release

from pointillist import Release


@pytest.fixture(scope="session")
def release() -> Release:
    """A release with names and values that try to break out of a page."""
    return hostile_release()


@pytest.fixture(scope="session")
def seeded() -> Release:
    """A release that is not private."""
    return hostile_release(insecure_noise_seed=1)


@pytest.fixture(scope="session")
def fine() -> Release:
    """A release with a date, money and a long list of values."""
    return fine_release()


@pytest.fixture(scope="session")
def wide(release: Release) -> Release:
    """A release of 42 columns."""
    return wide_release(release)


@pytest.fixture(scope="session")
def folder(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the first release."""
    return release.save(tmp_path_factory.mktemp("saved") / "release")
