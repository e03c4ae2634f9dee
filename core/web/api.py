"""Shared parts of the API: errors of one shape, checked input, pages of lists, ETags."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.exceptions import PermissionDenied as DjangoDenied
from django.forms import BaseForm
from django.http import Http404
from django.utils.http import parse_etags, quote_etag
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import exceptions, status
from rest_framework.mixins import ListModelMixin
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ChoiceField, IntegerField, ListSerializer, Serializer

from core.errors import Refused
from core.web.outages import find_outage, store_reason

WEIGHTS_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": "number", "minimum": 0, "maximum": 8},
}


def build_weights_parameter(description: str) -> OpenApiParameter:
    """Return the schema of the query parameter `weights`, which has one query key per weight."""
    return OpenApiParameter(
        "weights", WEIGHTS_SCHEMA, description=description, style="form", explode=True
    )


JSON_LINES_RESPONSE = {(200, "application/jsonl"): OpenApiResponse(OpenApiTypes.STR)}
"""The entry in the schema for operations that respond with JSON lines."""
FORMAT_PARAMETER = "format"
"""A query parameter that is always allowed. Django REST framework reads it."""
PAGING_PARAMETERS = ("cursor", "page_size", FORMAT_PARAMETER)
"""The query parameters that every list allows."""


class Problem(exceptions.APIException):
    """A refusal or an outage as an exception of Django REST framework."""

    def __init__(self, message: str, code: str, status: int, *, wait: int = 0, field: str = ""):
        super().__init__(message, code)
        self.status_code, self.field, self.wait = status, field, wait or None


def build_error_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return a response for any error: `{"error": {"code", "message", "fields"}}`.

    Returns None for a bug, for which the response is a 500. fields: messages by field name, for
    invalid input (422).
    """
    from rest_framework.views import exception_handler  # at the top it would import this module

    outage = find_outage(error)
    problem = error
    if isinstance(error, Refused):
        problem = Problem(str(error), error.code, error.status, wait=error.wait, field=error.field)
    elif outage:
        problem = Problem(outage.message, outage.code, outage.status, wait=outage.wait_seconds)
    response = exception_handler(problem, dict(context))
    if response is None:
        return None
    if outage:
        store_reason(response, outage, error)
    return _build_problem_response(response, problem)


def _build_problem_response(response: Response, error: Exception) -> Response:
    """Return the response with the error in the API's common format."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, DjangoDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    assert isinstance(error, exceptions.APIException)
    fields: dict[str, list[str]] = {}
    if isinstance(error, exceptions.ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        fields = _group_by_field(error.detail)
        code, message = "invalid", "Some fields are invalid."
    else:
        code, message = str(error.get_codes()), str(error.detail)
        if field := getattr(error, "field", ""):
            fields = {field: [message]}
    response.data = {"error": {"code": code, "message": message, "fields": fields}}
    return response


def _group_by_field(detail: Any, name: str = "") -> dict[str, list[str]]:
    """Return the nested messages of serializers by path, such as `card.license` or `rows.3`.

    The path is "" for messages about the whole input.
    """
    if isinstance(detail, Mapping):
        messages: dict[str, list[str]] = {}
        for key, value in detail.items():
            inner = "" if key in ("non_field_errors", NON_FIELD_ERRORS) else str(key)
            messages |= _group_by_field(value, ".".join(filter(None, (name, inner))))
        return messages
    if any(isinstance(message, Mapping | list) for message in detail):
        return _group_by_field(
            {str(n): message for n, message in enumerate(detail) if message}, name
        )
    return {name: [str(message) for message in detail]}


class LimitedJSONParser(JSONParser):
    """A JSON parser with a limit on depth; `core.web.bodies` limits the size."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError("The JSON is nested too deeply.") from None


class LateChoiceField(ChoiceField):
    """A choice field whose values are computed on use, such as the members of a registry."""

    def __init__(self, choices: Callable[[], Iterable[Any]], **kwargs: Any) -> None:
        # A serializer makes its fields again for each request, so a new member is known at once.
        super().__init__(list(choices()), **kwargs)


def read(serializer_class: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    """Return the request body, validated by the serializer.

    Raises ValidationError, by field, for invalid values and for fields that the serializer does not
    have.
    """
    body = serializer_class(data=request.data)
    # The framework ignores names that it does not know, and a misspelt one would do nothing.
    if unknown := _find_unknown_fields(body, request.data):
        raise exceptions.ValidationError(unknown)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _find_unknown_fields(shape: Any, data: Any) -> dict[str, Any]:
    """Return messages about the fields that the serializer lacks, nested like the data.

    shape: the serializer, or one of its fields. Empty if it has all fields.
    """
    if isinstance(shape, ListSerializer) and isinstance(data, list):
        unknown_fields = {
            str(n): _find_unknown_fields(shape.child, item) for n, item in enumerate(data)
        }
        return {index: inner for index, inner in unknown_fields.items() if inner}
    if not isinstance(shape, Serializer) or not isinstance(data, Mapping):
        return {}
    readable = {name: field for name, field in shape.fields.items() if not field.read_only}
    unknown = {name: [describe_known_names(readable)] for name in data.keys() - readable.keys()}
    inner = {
        name: _find_unknown_fields(field, data[name])
        for name, field in readable.items()
        if name in data
    }
    return unknown | {name: some for name, some in inner.items() if some}


def describe_known_names(known_names: Iterable[str]) -> str:
    """Return a message that a field does not exist, with the names of those that do."""
    return f"This field doesn't exist. Choose from: {', '.join(sorted(known_names)) or 'none'}."


def read_query(
    serializer_class: type[Serializer[Any]], request: Request, *other_names: str
) -> dict[str, Any]:
    """Return the query's filters, validated by the serializer. Filters that are None are left out.

    other_names: names of parameters that are read elsewhere. Raises ValidationError, by field, for
    invalid and unknown parameters.
    """
    filters = serializer_class(data=request.query_params)
    check_query(request, *filters.fields, *other_names)
    filters.is_valid(raise_exception=True)
    return {name: value for name, value in filters.validated_data.items() if value is not None}


def check_query(request: Request, *known_names: str, prefixes: tuple[str, ...] = ()) -> None:
    """Raise ValidationError by field for unknown query parameters.

    prefixes: prefixes of further allowed names. The known names are stored on the request, so that
    later calls allow them, too. Every list calls this, even without filters.
    """
    known_names = request.known = (*known_names, *getattr(request, "known", PAGING_PARAMETERS))  # type: ignore[attr-defined]
    unknown = {
        name: [describe_known_names(known_names)]
        for name in request.query_params
        if name not in known_names and not name.startswith(prefixes)
    }
    if unknown:
        raise exceptions.ValidationError(unknown)


class KnownQueryPermission(BasePermission):
    """A permission that refuses query parameters which the view does not read.

    Lists, and the methods in a view's `reads_query`, check their parameters themselves.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True. Raises ValidationError by field for unknown parameters."""
        is_list = request.method in SAFE_METHODS and isinstance(view, ListModelMixin)
        unread = {*request.query_params} - {FORMAT_PARAMETER}
        if unread and not is_list and request.method not in getattr(view, "reads_query", ()):
            raise exceptions.ValidationError(
                {name: [describe_known_names([FORMAT_PARAMETER])] for name in unread}
            )
        return True


class Negotiation(DefaultContentNegotiation):
    """A content negotiation that names the query field if a format is unknown."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        """Return the renderers for a format. Raises ValidationError for an unknown one."""
        try:
            return super().filter_renderers(renderers, format)
        except Http404:
            formats = ", ".join(sorted({renderer.format for renderer in renderers}))
            message = f"This format doesn't exist. Choose from: {formats}."
            raise exceptions.ValidationError({FORMAT_PARAMETER: [message]}) from None


def check_form(form: BaseForm) -> None:
    """Raise ValidationError by field with the errors of a page's form."""
    if not form.is_valid():
        raise exceptions.ValidationError(form.errors)  # type: ignore[arg-type]


class PageQuery(Serializer[Any]):
    """A serializer of the query parameter `page_size`, the number of rows on a page."""

    page_size = IntegerField(min_value=1, max_value=1000, default=100)


class Pages(CursorPagination):
    """Cursor pagination, ordered by id unless a subclass says otherwise.

    It neither skips nor repeats rows when others are added.
    """

    page_size_query_param = "page_size"
    ordering = "pk"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return a page. Raises ValidationError by field for an invalid query."""
        check_query(request)
        page_query = PageQuery(data=request.query_params)
        page_query.is_valid(raise_exception=True)
        self.page_size = page_query.validated_data["page_size"]
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, ValidationError):  # its position is no value of what is ordered by
            if self.cursor is None:
                raise
            raise _build_cursor_error() from None

    def get_page_size(self, request: Request) -> int | None:
        """Return the requested number of rows."""
        size: int = self.page_size  # type: ignore[assignment]  # set before
        return size

    def decode_cursor(self, request: Request) -> Any:
        """Return the position that the cursor encodes. Raises ValidationError."""
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound:
            raise _build_cursor_error() from None
        # The framework reads text without a position so, and would show the first page.
        if cursor == (0, False, None):  # it says nothing, as no link of ours does
            raise _build_cursor_error()
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the OpenAPI schema of a page, whose links are null at both ends."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI query parameters of a page, with their limits."""
        cursor = {"name": "cursor", "schema": {"type": "string"}, "description": _CURSOR_ADVICE}
        limits = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
        size = {"name": "page_size", "schema": limits, "description": "Rows of a page."}
        return [{"in": "query", "required": False, **parameter} for parameter in (cursor, size)]


_CURSOR_ADVICE = "From `next` or `previous` of a page."


def _build_cursor_error() -> exceptions.ValidationError:
    message = "This isn't a position in the list. Follow `next` from its first page."
    return exceptions.ValidationError({"cursor": [message]})


class NewestFirst(Pages):
    """Cursor pagination with the newest rows first."""

    ordering = "-pk"


def respond_with_version(request: Request, version: str, build: Callable[[], Any]) -> Response:
    """Return the result of `build` with an ETag; 304 without building if the client has it.

    version: a text that changes whenever the response does, also because of the reader's rights.
    """
    # With the query: another page or format of the same version is another answer.
    etag = quote_etag(hashlib.sha256(f"{request.get_full_path()} {version}".encode()).hexdigest())
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(build(), headers=headers)
