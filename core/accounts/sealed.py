"""List the columns that store encrypted secrets, for key rotation, restoration and the doctor."""

from collections.abc import Iterator

from django.apps import apps
from django.db.models import Model

SEALED_COLUMNS = {
    "accounts.SiteKey": "sealed",
    "campaigns.Campaign": "sealed_token",
    "campaigns.Place": "sealed_id",
    "evaluation.Submission": "secret",
    "tasks.Generator": "sealed_secret",
    "tasks.TargetModel": "sealed_secret",
    "webhooks.Webhook": "secret",
}
"""The column of values encrypted by `encrypt`, by model, without values that expire in a day."""


def iterate_sealed_columns() -> Iterator[tuple[type[Model], str]]:
    """Yield each model that has a column of encrypted values, with the column's name."""
    for label, column in SEALED_COLUMNS.items():
        yield apps.get_model(label), column
