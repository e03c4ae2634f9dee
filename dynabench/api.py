"""The API's addresses below /api/v1/, and the parts of its schema that all of them share."""

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.urls import include, path, re_path
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts import api as accounts
from core.web.outages import respond_api_error, respond_unavailable
from dynabench.api_page import CachedSchemaGenerator, EndpointList

ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fields"],
            "properties": {
                "code": {"type": "string", "description": "An error code for programs."},
                "message": {"type": "string", "description": "What is wrong and how to fix it."},
                "fields": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                    "description": "Error messages by field, for invalid input.",
                },
            },
        }
    },
}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The OpenAPI description of how a token is sent."""

    target_class = "core.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


def add_error_responses(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the common error format and Retry-After to every operation of the schema.

    Also declares that request bodies accept no further properties, because unknown fields are
    refused (`core.web.api.read`).
    """
    for name, schema in result["components"].get("schemas", {}).items():
        if name.endswith("Request") and "properties" in schema:
            schema["additionalProperties"] = False
    result["components"].setdefault("schemas", {})["Error"] = (
        ERROR_SCHEMA  # none: no address was found
    )
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    retry_header = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    errors = {
        "4XX": {"description": "The request is invalid or not allowed.", "content": content},
        "429": {"description": "Too many requests.", "content": content, "headers": retry_header},
        "503": {"description": "Busy.", "content": content, "headers": retry_header},
        "5XX": {"description": "An internal error, or the site is overloaded.", "content": content},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"] |= errors
    return result


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the response for an unexpected error or an unavailable part of the site.

    It is in the API's format for URLs of the API, otherwise a page. Reads the exception that is
    being handled.
    """
    if (unavailable_response := respond_unavailable(request, sys.exc_info()[1])) is not None:
        return unavailable_response
    if not request.path.startswith("/api/"):  # no context processors: one of them may be at fault
        page = loader.render_to_string("500.html", {"request": request})
        return HttpResponse(page, status=500)
    message = f"The site failed. Tell its operator the number {getattr(request, 'id', '')}."
    return respond_api_error("server_error", message, 500)


class UnknownUrlView(APIView):
    """The view for unknown URLs of the API, which responds with 404."""

    permission_classes = [AllowAny]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise exceptions.NotFound("Unknown API URL. See /api/v1/docs/.")

    def get(self, request: Request, rest: str) -> Response:  # pragma: no cover
        raise exceptions.NotFound


urlpatterns = [
    path("me/", accounts.MeView.as_view(), name="me"),
    path("tokens/", accounts.Tokens.as_view(), name="tokens"),
    path("tokens/<int:pk>/", accounts.TokenView.as_view(), name="token"),
    path(
        "schema/",
        SpectacularAPIView.as_view(
            permission_classes=[AllowAny], generator_class=CachedSchemaGenerator
        ),
        name="schema",
    ),
    path("", include("dynabench.webhooks.api")),
    path("docs/", EndpointList.as_view(), name="docs"),
    path(
        "docs/try/", SpectacularSwaggerSplitView.as_view(permission_classes=[AllowAny]), name="try"
    ),
    path("", include("tasks.api.urls")),
    path("", include("annotation.api.urls")),
    path("", include("validation.api.urls")),
    path("", include("evaluation.api.urls")),
    path("", include("leaderboard.api.urls")),
    path("", include("dynabench.adversaries.api")),
    path("", include("dynabench.adversaries.program_api")),
    path("", include("dynabench.adversaries.container_api")),
    path("", include("dynabench.adversaries.board_api")),
    path("", include("dynabench.campaigns.api")),
    path("", include("dynabench.catches.api")),
    path("", include("dynabench.failures.api")),
    path("", include("dynabench.mixed_rounds.api")),
    path("", include("dynabench.communities.own_api")),
    path("", include("dynabench.communities.api")),
    path("", include("dynabench.studies.api")),
    path("", include("dynabench.manage.api")),
    path("", include("dynabench.manage.config_api")),
    path("", include("dynabench.manage.approval_api")),
    path("", include("dynabench.manage.forecast")),
    re_path(r"^(?P<rest>[\s\S]*)$", UnknownUrlView.as_view()),
]
