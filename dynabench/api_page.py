"""The reference of the API at `/api/v1/docs/`: its endpoints, listed from the schema."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.urls import resolve
from django.utils.translation import get_language, override
from drf_spectacular.generators import SchemaGenerator
from rest_framework.permissions import AllowAny
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.authentication import get_needed_scope

PREFIX = "/api/v1"
SUMMARY_CHARS = 140
PUBLIC, SESSION_ONLY = "public", "session"
"""The access of an endpoint that needs no token scope: open to all, or only in a session."""
SAMPLES = {"integer": "1", "uuid": "00000000-0000-0000-0000-000000000000"}
"""Sample values for the parameters of a path, by format or type."""


@dataclass(frozen=True)
class Endpoint:
    """One operation: its method, its path below the prefix, what it does and what it needs.

    access: the scope of a token, `PUBLIC` or `SESSION_ONLY`.
    """

    method: str
    path: str
    summary: str
    access: str


@dataclass(frozen=True)
class EndpointGroup:
    """The endpoints about one thing, such as `examples` or `tasks/rounds`."""

    name: str
    endpoints: list[Endpoint] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Return the id of the group's heading."""
        return self.name.replace("/", "-")

    @property
    def is_nested(self) -> bool:
        """Return whether the group is about a part of a task."""
        return "/" in self.name

    @property
    def title(self) -> str:
        """Return the group's heading, such as `Tasks › Evaluation sets`."""
        return " › ".join(_humanize_name(part) for part in self.name.split("/"))

    @property
    def short_title(self) -> str:
        """Return the last part of the heading, for a list below the entry `Tasks`."""
        return _humanize_name(self.name.rpartition("/")[2])


class CachedSchemaGenerator(SchemaGenerator):
    """A generator of the public schema that generates it only once in each process and language.

    Generating the schema takes a second.
    """

    def get_schema(self, request: Request | None = None, public: bool = False) -> Any:
        return _generate_schema(self.api_version, get_language())


class EndpointList(APIView):
    """The page that lists the endpoints. It works without JavaScript."""

    permission_classes = [AllowAny]
    renderer_classes = [TemplateHTMLRenderer]
    schema = None

    def get(self, request: Request) -> Response:
        return Response({"groups": list_endpoint_groups()}, template_name="api.html")


@lru_cache(maxsize=1)
def list_endpoint_groups() -> list[EndpointGroup]:
    """Return all endpoints in English, grouped by what they are about."""
    with override("en"):
        schema = _generate_schema("v1", "en")
    groups: dict[str, EndpointGroup] = {}
    for path, operations in schema["paths"].items():
        short_path = path.removeprefix(PREFIX)
        name = _name_group(short_path)
        group = groups.setdefault(name, EndpointGroup(name))
        for method, operation in operations.items():
            group.endpoints.append(
                Endpoint(
                    method.upper(),
                    short_path,
                    _shorten(operation["description"]),
                    _find_access(path, method, operation),
                )
            )
    return [groups[name] for name in sorted(groups)]


@lru_cache(maxsize=8)
def _generate_schema(version: str | None, language: str | None) -> Any:
    return SchemaGenerator(api_version=version).get_schema(public=True)  # type: ignore[no-untyped-call]


def _humanize_name(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _name_group(path: str) -> str:
    """Return the group of a path: its first part; below a task, also the part after the code.

    >>> _name_group("/examples/{id}/"), _name_group("/tasks/{code}/rounds/{number}/")
    ('examples', 'tasks/rounds')
    """
    first, *others = path.strip("/").split("/")
    if first == "tasks" and len(others) > 1:
        return f"{first}/{others[1]}"
    return first


def _shorten(description: str) -> str:
    """Return the first sentence of an operation's description, shortened to `SUMMARY_CHARS`."""
    text = " ".join(description.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) |; ", text)[0]
    if len(sentence) > SUMMARY_CHARS:
        sentence = sentence[:SUMMARY_CHARS].rsplit(" ", 1)[0] + " …"
    return sentence


def _find_access(path: str, method: str, operation: Mapping[str, Any]) -> str:
    """Return the token scope that the request's view requires, or `PUBLIC` or `SESSION_ONLY`."""
    address = path
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            parameter_schema = parameter["schema"]
            sample = SAMPLES.get(parameter_schema.get("format") or parameter_schema["type"], "x")
            address = address.replace("{" + parameter["name"] + "}", sample)
    view = getattr(resolve(address).func, "view_class")  # noqa: B009 -- what APIView.as_view() returns
    is_read = method == "get"
    if is_read and getattr(view, "is_public", False):
        return PUBLIC
    return get_needed_scope(view, is_read=is_read) or SESSION_ONLY
