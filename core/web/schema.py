"""What the API's schema says of each operation beyond what the framework finds out."""

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.openapi import AutoSchema
from rest_framework.fields import ChoiceField, Field
from rest_framework.permissions import SAFE_METHODS


class Operation(AutoSchema):
    """A schema of operations that knows which need no token and which choices may be empty."""

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the authentication methods, with an empty one for public reads."""
        ways: list[dict[str, Any]] = super().get_auth()
        is_read = self.method in SAFE_METHODS
        return [*ways, {}] if is_read and getattr(self.view, "is_public", False) else ways

    def _map_serializer_field(
        self, field: Field[Any, Any, Any, Any], *args: Any, **how: Any
    ) -> Any:
        # The framework forgets that a column may be empty where its field is only read.
        if isinstance(field, ChoiceField) and field.read_only and _may_be_blank(field):
            field.allow_blank = True
        return super()._map_serializer_field(field, *args, **how)  # type: ignore[no-untyped-call]


def _may_be_blank(field: Field[Any, Any, Any, Any]) -> bool:
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    if model is None:
        return False
    try:
        return bool(model._meta.get_field(field.source).blank)
    except FieldDoesNotExist:
        return False
