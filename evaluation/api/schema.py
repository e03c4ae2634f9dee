"""What the schema says of this room's operations, a line each."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from dynabench.accounts.api import once

Handler = Callable[..., Response]
JSON_LINES = {(200, "application/jsonl"): OpenApiResponse(OpenApiTypes.STR)}


def writes(name: str, takes: Any, gives: Any, status: int = 200) -> Callable[[Handler], Handler]:
    """A write, which is done once. takes, gives: the serializers of body and answer; or None."""
    described = extend_schema(operation_id=name, request=takes, responses={status: gives})
    return lambda handler: described(once(handler))
