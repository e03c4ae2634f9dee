"""Each page that refuses logged a traceback, and odd filters of the admin were errors."""

import logging

import pytest

from core.web.outages import OneLineFilter
from tests.support.factories import TaskFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines(caplog):
    """What the log holds, as the site's handler filters it."""
    caplog.handler.addFilter(one_line := OneLineFilter())
    yield caplog
    caplog.handler.removeFilter(one_line)


def one_warning(lines):
    (line,) = lines.records
    assert (line.levelno, line.levelname) == (logging.WARNING, "WARNING")
    assert line.exc_info is line.exc_text is None
    assert "\n" not in lines.handler.format(line)


def test_a_refused_page_is_one_line(as_alice, alice, lines):
    TaskFactory(code="nli").members.create(user=alice, role="viewer")
    assert as_alice.get("/own/nli/access/").status_code == 403
    one_warning(lines)


def test_a_missing_page_is_one_line(client, lines):
    assert client.get("/t/nothing/").status_code == 404
    one_warning(lines)


def test_an_odd_filter_of_the_admin_is_one_line(admin_client, lines):
    filtered = "/admin/tasks/round/?task__members__user__password=a"
    assert admin_client.get(filtered).status_code == 400
    one_warning(lines)


def test_a_fault_of_ours_keeps_its_traceback(lines):
    try:
        raise ValueError("ours")
    except ValueError:
        logging.getLogger("django.request").exception("Internal", extra={"status_code": 500})
    (line,) = lines.records
    assert line.exc_info
    assert line.levelno == logging.ERROR
