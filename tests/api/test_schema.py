"""The checked-in schema of the API is the true one.

After a wanted change: ./test --update schema
"""

import difflib
import gzip
from pathlib import Path

import pytest
import yaml
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer

from dynabench.api_page import list_endpoint_groups
from tests.support.snapshots import UPDATES

KEPT = Path(__file__).parents[2] / "docs" / "openapi-v1.yaml"
HOW = "docs/openapi-v1.yaml has drifted. Run `./test --update schema`, and read "
HOW += "the difference: what others call must not change without a new version."


@pytest.fixture(scope="module")
def schema():
    return SchemaGenerator(api_version="v1").get_schema(public=True)


def test_the_schema_in_the_docs_is_the_true_one(schema):
    true = OpenApiYamlRenderer().render(schema, renderer_context={}).decode()
    if UPDATES:
        KEPT.write_text(true)
    kept = KEPT.read_text()
    lines = difflib.unified_diff(kept.splitlines(), true.splitlines(), "docs", "true", lineterm="")
    assert kept == true, "\n".join([HOW, *list(lines)[:60]])


def test_every_operation_says_what_it_is(schema):
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path} lacks a docstring"
            noun, _, verb = operation["operationId"].rpartition("_")
            assert noun, f"{operation['operationId']}: name it noun_verb"
            assert verb


def test_everybody_reads_it(client, db):
    served = client.get("/api/v1/schema/")
    assert served.status_code == 200
    assert yaml.safe_load(served.content)["openapi"] == "3.1.1"
    assert client.get("/api/v1/schema/", {"format": "json"}).json()["openapi"] == "3.1.1"


def test_the_page_that_tries_requests_needs_nothing_from_elsewhere(client, db):
    page = client.get("/api/v1/docs/try/")
    assert page["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert 'id="swagger-ui"' in page.text
    assert "<style" not in page.text
    script = client.get("/api/v1/docs/try/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert "schema/" in script.text


def test_every_operation_is_listed_without_a_script(client, db, schema):
    page = client.get("/api/v1/docs/")
    listed = [
        (endpoint.method, "/api/v1" + endpoint.path)
        for group in page.context["groups"]
        for endpoint in group.endpoints
    ]
    assert sorted(listed) == sorted(
        (method.upper(), path)
        for path, operations in schema["paths"].items()
        for method in operations
    )
    assert page.text.count("<tr") == len(listed)
    assert "swagger" not in page.text
    assert len(gzip.compress(page.content)) < 30_000


def test_the_list_says_what_a_token_needs():
    access = {
        (endpoint.method, endpoint.path): endpoint.access
        for group in list_endpoint_groups()
        for endpoint in group.endpoints
    }
    assert access["GET", "/tasks/"] == "public"
    assert access["GET", "/me/"] == "read"
    assert access["POST", "/tokens/"] == "session"
    assert access["POST", "/tasks/"] == "own"
    assert access["POST", "/tasks/{code}/media/"] == "annotate"
    assert access["POST", "/webhooks/"] == "submit"
