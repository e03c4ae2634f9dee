"""What is counted on each server, as a table at the end of the lane."""

from collections import defaultdict

import pytest

from tests.web.conftest import _fast_and_clean, _text_without_layout  # noqa: F401

Figures = dict[str, dict[str, str]]
_figures: Figures = defaultdict(dict)


@pytest.fixture
def figures() -> Figures:
    """By server and by what was asked: in how many of how many cases both said the same."""
    return _figures


@pytest.fixture(autouse=True)
def _reaches_this_machine(settings, tmp_path, transactional_db):
    """Everything is asked here, and waited for however long the machine takes."""
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.TARGET_PRIVATE_HOSTS = settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.LIVE_WAIT_SECONDS = settings.LIVE_DEADLINE_SECONDS = 600


def pytest_terminal_summary(terminalreporter) -> None:
    for server, counted in _figures.items():
        told = ", ".join(f"{asked}: {count}" for asked, count in counted.items())
        terminalreporter.write_line(f"{server}: {told}")
