"""Add what Django REST framework cannot find out to the API's schema."""

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.openapi import AutoSchema
from rest_framework.fields import ChoiceField, Field
from rest_framework.permissions import SAFE_METHODS


class OperationSchema(AutoSchema):
    """An operation's schema that also shows public reads, and choices that may be empty."""

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the authentication methods. For public reads, add an empty one."""
        methods: list[dict[str, Any]] = super().get_auth()
        is_read = self.method in SAFE_METHODS
        return [*methods, {}] if is_read and getattr(self.view, "is_public", False) else methods

    def _map_serializer_field(
        self, field: Field[Any, Any, Any, Any], *args: Any, **kwargs: Any
    ) -> Any:
        # The framework forgets that a column may be empty where its field is only read.
        if isinstance(field, ChoiceField) and field.read_only and _may_be_blank(field):
            field.allow_blank = True
        return super()._map_serializer_field(field, *args, **kwargs)  # type: ignore[no-untyped-call]


def _may_be_blank(field: Field[Any, Any, Any, Any]) -> bool:
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    if model is None:
        return False
    try:
        return bool(model._meta.get_field(field.source).blank)
    except FieldDoesNotExist:
        return False
