"""Where secrets are stored encrypted: for a new key, a restoration and the doctor."""

from collections.abc import Iterator

from django.apps import apps
from django.db.models import Model

SEALED = {
    "accounts.SiteKey": "sealed",
    "campaigns.Campaign": "sealed_token",
    "campaigns.Place": "sealed_id",
    "evaluation.Submission": "secret",
    "tasks.Generator": "sealed_secret",
    "tasks.TargetModel": "sealed_secret",
    "webhooks.Webhook": "secret",
}
"""By model the column that `encrypt` filled. What ends within a day by itself is left out."""


def sealed_columns() -> Iterator[tuple[type[Model], str]]:
    """Yield each model that has a column of encrypted values, with the column's name."""
    for label, column in SEALED.items():
        yield apps.get_model(label), column
