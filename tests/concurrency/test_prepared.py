"""Web processes let PostgreSQL keep the plans of what they often ask."""

import pytest
from django.db import connection

from core.env import PREPARED_STATEMENT_OPTIONS

KEPT = "SELECT COUNT(*) FROM pg_prepared_statements WHERE statement LIKE %s"


@pytest.mark.parametrize(("options", "kept"), [(PREPARED_STATEMENT_OPTIONS, 1), ({}, 0)])
@pytest.mark.django_db
def test_what_is_often_asked_is_planned_once(options, kept):
    own = connection.copy()
    told = {
        k: v for k, v in own.settings_dict["OPTIONS"].items() if k not in PREPARED_STATEMENT_OPTIONS
    }
    own.settings_dict["OPTIONS"] = told | options
    try:
        with own.cursor() as cursor:
            for number in range(8):
                cursor.execute("SELECT code FROM tasks_task WHERE id = %s", [number])
            cursor.execute(KEPT, ["%tasks_task%"])
            assert cursor.fetchone() == (kept,)
    finally:
        own.close()
