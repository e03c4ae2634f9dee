"""Shared by every part of the API: errors of one shape, checked input, pages of lists, ETags."""

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
from core.web.outages import note_reason, outage_of

WEIGHTS = {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 8}}


def weights(description: str) -> OpenApiParameter:
    """Return the query parameter for weights, one query key per weight."""
    return OpenApiParameter("weights", WEIGHTS, description=description, style="form", explode=True)


JSON_LINES = {(200, "application/jsonl"): OpenApiResponse(OpenApiTypes.STR)}
"""Of an operation in the schema that answers with lines."""
FORMAT = "format"
"""What any query may say; the framework reads it."""
PAGING = ("cursor", "page_size", FORMAT)
"""What the query of a list may say."""


class Problem(exceptions.APIException):
    """A refusal or an outage as an exception of Django REST framework."""

    def __init__(self, message: str, code: str, status: int, *, wait: int = 0, field: str = ""):
        super().__init__(message, code)
        self.status_code, self.field, self.wait = status, field, wait or None


def answer_error(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return a response for any error: `{"error": {"code", "message", "fields"}}`.

    None for a bug, which gives a 500. fields: messages by field name, for invalid input (422).
    """
    from rest_framework.views import exception_handler  # at the top it would import this module

    outage = outage_of(error)
    problem = error
    if isinstance(error, Refused):
        problem = Problem(str(error), error.code, error.status, wait=error.wait, field=error.field)
    elif outage:
        problem = Problem(outage.message, outage.code, outage.status, wait=outage.wait_seconds)
    response = exception_handler(problem, dict(context))
    if response is None:
        return None
    if outage:
        note_reason(response, outage, error)
    return _problem_response(response, problem)


def _problem_response(response: Response, error: Exception) -> Response:
    """Return the response in the API's common format of errors."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, DjangoDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    assert isinstance(error, exceptions.APIException)
    fields: dict[str, list[str]] = {}
    if isinstance(error, exceptions.ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        fields = _by_field(error.detail)
        code, message = "invalid", "Some fields cannot be taken as they are."
    else:
        code, message = str(error.get_codes()), str(error.detail)
        if field := getattr(error, "field", ""):
            fields = {field: [message]}
    response.data = {"error": {"code": code, "message": message, "fields": fields}}
    return response


def _by_field(detail: Any, name: str = "") -> dict[str, list[str]]:
    """Flatten nested messages of serializers by path: `card.license`, `rows.3`, or "".

    The path "" is for messages about the whole.
    """
    if isinstance(detail, Mapping):
        messages: dict[str, list[str]] = {}
        for key, value in detail.items():
            inner = "" if key in ("non_field_errors", NON_FIELD_ERRORS) else str(key)
            messages |= _by_field(value, ".".join(filter(None, (name, inner))))
        return messages
    if any(isinstance(message, Mapping | list) for message in detail):
        return _by_field({str(n): message for n, message in enumerate(detail) if message}, name)
    return {name: [str(message) for message in detail]}


class Json(JSONParser):
    """A JSON parser with a limit on depth; `core.web.bodies` limits the size."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError("JSON that nests too deeply.") from None


class LateChoiceField(ChoiceField):
    """A choice whose values are asked for when it is used, such as the members of a registry."""

    def __init__(self, choices: Callable[[], Iterable[Any]], **more: Any) -> None:
        # A serializer makes its fields again for each request, so a new member is known at once.
        super().__init__(list(choices()), **more)


def read(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    """Return the request body, validated by the serializer. Raises ValidationError by field."""
    body = shape(data=request.data)
    # The framework ignores names that it does not know, and a misspelt one would do nothing.
    if unknown := _unknown(body, request.data):
        raise exceptions.ValidationError(unknown)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _unknown(shape: Any, data: Any) -> dict[str, Any]:
    """Return a message for each field that the serializer lacks, nested like the data."""
    if isinstance(shape, ListSerializer) and isinstance(data, list):
        unknown_fields = {str(n): _unknown(shape.child, item) for n, item in enumerate(data)}
        return {place: inner for place, inner in unknown_fields.items() if inner}
    if not isinstance(shape, Serializer) or not isinstance(data, Mapping):
        return {}
    readable = {name: field for name, field in shape.fields.items() if not field.read_only}
    unknown = {name: [no_such(readable)] for name in data.keys() - readable.keys()}
    inner = {name: _unknown(field, data[name]) for name, field in readable.items() if name in data}
    return unknown | {name: some for name, some in inner.items() if some}


def no_such(known_names: Iterable[str]) -> str:
    """Return a message about an unknown name that lists the known ones."""
    return f"There is no such field. Choose among: {', '.join(sorted(known_names)) or 'none'}."


def wanted(shape: type[Serializer[Any]], request: Request, *also: str) -> dict[str, Any]:
    """Return the query's filters, validated by the serializer. Raises ValidationError.

    also: parameters that are read elsewhere.
    """
    filters = shape(data=request.query_params)
    check_query(request, *filters.fields, *also)
    filters.is_valid(raise_exception=True)
    return {name: value for name, value in filters.validated_data.items() if value is not None}


def check_query(request: Request, *known_names: str, prefixes: tuple[str, ...] = ()) -> None:
    """Raise ValidationError by field for unknown query parameters.

    prefixes: prefixes of further allowed names. Every list calls this, even without filters.
    """
    known_names = request.known = (*known_names, *getattr(request, "known", PAGING))  # type: ignore[attr-defined]
    unknown = {
        name: [no_such(known_names)]
        for name in request.query_params
        if name not in known_names and not name.startswith(prefixes)
    }
    if unknown:
        raise exceptions.ValidationError(unknown)


class KnownQuery(BasePermission):
    """A permission that refuses query parameters which the view does not read.

    Lists, and the methods in a view's `reads_query`, check their parameters themselves.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True. Raises ValidationError by field."""
        is_list = request.method in SAFE_METHODS and isinstance(view, ListModelMixin)
        unread = {*request.query_params} - {FORMAT}
        if unread and not is_list and request.method not in getattr(view, "reads_query", ()):
            raise exceptions.ValidationError({name: [no_such([FORMAT])] for name in unread})
        return True


class Negotiation(DefaultContentNegotiation):
    """A content negotiation that names the query field if a format is unknown."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        """Return the renderers for a format. Raises ValidationError."""
        try:
            return super().filter_renderers(renderers, format)
        except Http404:
            formats = ", ".join(sorted({renderer.format for renderer in renderers}))
            message = f"There is no such format. Choose among: {formats}."
            raise exceptions.ValidationError({FORMAT: [message]}) from None


def check_form(form: BaseForm) -> None:
    """Raise ValidationError by field with the errors of a page's form."""
    if not form.is_valid():
        raise exceptions.ValidationError(form.errors)  # type: ignore[arg-type]


class PageQuery(Serializer[Any]):
    """The query parameter for the number of rows on a page."""

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
            raise _bad_cursor() from None

    def get_page_size(self, request: Request) -> int | None:
        """Return the requested number of rows."""
        size: int = self.page_size  # type: ignore[assignment]  # set before
        return size

    def decode_cursor(self, request: Request) -> Any:
        """Return the position in a cursor. Raises ValidationError for an invalid one."""
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound:
            raise _bad_cursor() from None
        # The framework reads text without a position so, and would show the first page.
        if cursor == (0, False, None):  # it says nothing, as no link of ours does
            raise _bad_cursor()
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a page, whose links are null at both ends."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the query parameters of a page, with their limits."""
        cursor = {"name": "cursor", "schema": {"type": "string"}, "description": _CURSOR}
        limits = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
        size = {"name": "page_size", "schema": limits, "description": "Rows of a page."}
        return [{"in": "query", "required": False, **parameter} for parameter in (cursor, size)]


_CURSOR = "From `next` or `previous` of a page."


def _bad_cursor() -> exceptions.ValidationError:
    message = "This is no place in the list. Follow `next` from its first page."
    return exceptions.ValidationError({"cursor": [message]})


class NewestFirst(Pages):
    """Cursor pagination with the newest rows first."""

    ordering = "-pk"


def versioned(request: Request, version: str, build: Callable[[], Any]) -> Response:
    """Return the result of `build` with `version` as its ETag; 304 without building on a match.

    version: changes whenever the response does, and includes who may see which part of it.
    """
    # With the query: another page or format of the same version is another answer.
    etag = quote_etag(hashlib.sha256(f"{request.get_full_path()} {version}".encode()).hexdigest())
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(build(), headers=headers)
