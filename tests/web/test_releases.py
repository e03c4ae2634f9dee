"""Databases of former releases: what an upgrade finds, and what it makes of it."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def body_takes(text: str) -> str:
    """The text, stored as a repeated request's answer and read again."""
    from django.utils import timezone

    from dynabench.accounts.models import IdempotentAnswer, User

    user = User.objects.create(email="a@example.com")
    IdempotentAnswer.objects.create(
        user=user, key="k", digest="d", body=text, begun_at=timezone.now()
    )
    return IdempotentAnswer.objects.get().body


@pytest.mark.django_db(transaction=True)
def test_a_column_that_was_json_becomes_text():
    """Migration accounts/0003 was edited once: sites that had applied it kept a JSON column."""
    from django.db import models

    from dynabench.accounts.models import IdempotentAnswer

    executor = MigrationExecutor(connection)
    executor.migrate([("accounts", "0003_api_tokens")])
    json = models.JSONField(null=True)
    json.set_attributes_from_name("body")
    json.model = IdempotentAnswer
    try:
        with connection.schema_editor() as editor:
            editor.alter_field(IdempotentAnswer, IdempotentAnswer._meta.get_field("body"), json)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    assert body_takes('{"a": 1,') == '{"a": 1,'
