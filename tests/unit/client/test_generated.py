"""The modules that are generated from the API's schema, and what is said where they are missing."""

import inspect
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import date
from io import BytesIO
from pathlib import Path

import httpx
import pytest

from dynabench import DynabenchClient
from dynabench.client import freshness
from dynabench.client.plain import Plain
from dynabench.download import build_archive
from scripts.client_code import ROOT, generate_client, read_schema
from scripts.client_methods import write_methods
from scripts.client_types import write_types

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
ANSWER = {"200": {"content": {"application/json": {"schema": {"$ref": "#/c/Thing"}}}}}
PAGE = {"200": {"content": {"application/json": {"schema": {"$ref": "#/c/PaginatedThingList"}}}}}
SCHEMA = {
    "paths": {
        "/api/v1/boxes/{box}/things/{id}/": {
            "patch": {
                "operationId": "things_change",
                "description": "Change a thing.\n\nOnly of HTTP.",
                "parameters": [
                    # Not in the order of the address, as the schema sorts them by name.
                    {"name": "id", "in": "path", "schema": NUMBER},
                    {"name": "box", "in": "path", "schema": TEXT},
                    {"name": "Idempotency-Key", "in": "header", "schema": TEXT},
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/c/PatchedThingRequest"}}}
                },
                "responses": ANSWER,
            },
            "delete": {
                "operationId": "things_delete",
                "description": "Delete a thing.",
                "parameters": [
                    {"name": "box", "in": "path", "schema": TEXT},
                    {"name": "id", "in": "path", "schema": NUMBER},
                ],
                "responses": {"204": {"description": "Gone."}},
            },
        },
        "/api/v1/things/": {
            "get": {
                "operationId": "things_list",
                "description": "Return all things.",
                "parameters": [
                    {"name": "new", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "page_size", "in": "query", "schema": NUMBER},
                ],
                "responses": PAGE,
            },
            "post": {
                "operationId": "things_take",
                "description": "Take a thing, if there is one.",
                "responses": {**ANSWER, "204": {}, "4XX": {}},
            },
        },
    },
    "components": {
        "schemas": {
            "Thing": {"description": "A thing.", "required": ["id"], "properties": {"id": NUMBER}},
            "PatchedThingRequest": {
                "properties": {
                    "name": TEXT,
                    "parts": {"type": "array", "items": NUMBER},
                    "until": {"type": ["string", "null"], "format": "date"},
                }
            },
            "PaginatedThingList": {
                "properties": {
                    "next": TEXT,
                    "results": {"type": "array", "items": {"$ref": "#/c/Thing"}},
                }
            },
        }
    },
}


def written(**operations):
    """What the generator writes for a table, without white space at ends and breaks of lines."""
    text = write_methods(SCHEMA, {"things": operations})
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    ("operation", "signature", "lines"),
    [
        (
            "things_change",
            "rename(crate, thing_id, name, parts=(), until=None)",
            [
                "def rename( self, crate: str, thing_id: int, name: str, parts: Sequence[int] = (),"
                " until: date | None = None, ) -> Flow[types.Thing]:",
                '"""Change a thing."""',
                'self._write("PATCH", f"/boxes/{crate}/things/{thing_id}/", {"name": name,'
                ' "parts": list(parts), "until": until.isoformat() if until else None})',
            ],
        ),
        (
            "things_change",
            "change(box, id, **change)",
            ["**change: Unpack[types.Thing]", 'f"/boxes/{box}/things/{id}/", change)'],
        ),
        (
            "things_change",
            "mark(box, id, *, name: bytes, **more: types.More)",
            ["id: int, *, name: bytes, **more: Unpack[types.More]", '{"name": name, **more})'],
        ),
        ("things_delete", "remove(box, id)", ["Flow[None]", '"DELETE", f"/boxes/{box}/things/']),
        (
            "things_list",
            "things(new=False)",
            ["Flow[list[types.Thing]]", 'self._iterate_pages("/things/", new=new or None)'],
        ),
        ("things_take", "take()", ["Flow[types.Thing | None]", 'self._write("POST", "/things/")']),
    ],
)
def test_a_signature_and_the_schema_make_a_method(operation, signature, lines):
    text = written(**{operation: signature})
    for line in lines:
        assert line in text


@pytest.mark.parametrize(
    ("operation", "signatures", "named"),
    [
        ("things_lose", "lose()", "things_lose"),
        ("things_delete", "remove(box)", "remove"),
        ("things_delete", "remove(box, id, name)", "name"),
        ("things_change", "change(box, id, colour)", "colour"),
        ("things_list", ["things()", "things(new=True)"], "things"),
    ],
)
def test_a_table_that_does_not_fit_the_schema_is_refused(operation, signatures, named):
    with pytest.raises(ValueError, match=rf"methods\.toml: .*{named}"):
        written(**{operation: signatures})


def test_a_note_is_added_to_the_docstring_of_its_method():
    operations = {"things_delete": "remove(box, id)"}
    text = write_methods(SCHEMA, {"things": operations, "notes": {"remove": "For good."}})
    assert '"""Delete a thing.\n\n        For good.\n        """' in text
    with pytest.raises(ValueError, match="forget"):
        write_methods(SCHEMA, {"things": operations, "notes": {"forget": "For good."}})


def test_the_answer_of_two_schemas_with_one_name_is_the_type():
    assert re.search(
        r"class Thing\(TypedDict\):\n +\"{3}A thing.\"{3}\n +id: int\n", write_types(SCHEMA)
    )


VALUES = {int: 7, float: 0.5, bool: True, date | None: date(2026, 1, 2)}
"""Arguments by their type; all others take a word."""


def test_every_plain_method_makes_one_request_that_the_schema_has():
    templates = {
        (verb.upper(), re.sub(r"\{\w+\}", "[^/]+", path))
        for path, operations in read_schema()["paths"].items()
        for verb in operations
    }
    requests = []

    def answer(request):
        requests.append(request)
        return httpx.Response(200, json=[])

    client = DynabenchClient("key", "http://dynabench.test", transport=httpx.MockTransport(answer))
    methods = [name for name in vars(Plain) if not name.startswith("_")]
    assert len(methods) > 100
    for name in methods:
        parameters = inspect.signature(getattr(client, name)).parameters.values()
        values = {
            each.name: VALUES.get(each.annotation, "word")
            for each in parameters
            if each.kind is not each.VAR_KEYWORD and each.default is each.empty
        }
        getattr(client, name)(**values)
        request = requests.pop()
        assert not requests, name
        matching = [verb for verb, path in templates if re.fullmatch(path, request.url.path)]
        assert request.method in matching, name


@pytest.fixture
def checkout(tmp_path):
    """A copy of all that the client is, and is made of, which Python can import."""
    for name in (*freshness.SOURCES, "dynabench/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "dynabench/client", tmp_path / "dynabench/client", dirs_exist_ok=True)
    return tmp_path


def run_in(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=checkout, capture_output=True, text=True
    )


def test_a_missing_or_outdated_module_is_named_with_the_command(checkout):
    program = "from dynabench import DynabenchClient"
    run_in(checkout, *freshness.COMMAND.split()[1:])
    assert run_in(checkout, "-c", program).returncode == 0
    (checkout / "dynabench/client/types.py").unlink()
    missing = run_in(checkout, "-c", program)
    assert missing.returncode == 1
    assert "types.py" in missing.stderr.splitlines()[-1]
    assert freshness.COMMAND in missing.stderr
    assert run_in(checkout, *freshness.COMMAND.split()[1:]).returncode == 0
    assert run_in(checkout, "-c", program).returncode == 0
    with (checkout / "docs/openapi-v1.yaml").open("a") as schema:
        schema.write("# another one\n")
    outdated = run_in(checkout, "-c", program)
    assert outdated.returncode == 1
    assert freshness.COMMAND in outdated.stderr
    # Where there is nothing to make them of, as in the wheel, they are as they are.
    (checkout / "docs/openapi-v1.yaml").unlink()
    assert run_in(checkout, "-c", program).returncode == 0


def test_current_modules_are_left_alone():
    generate_client()
    assert generate_client() is False


def test_the_sites_archive_holds_what_they_are_made_of_and_not_them():
    names = {*zipfile.ZipFile(BytesIO(build_archive())).namelist()}
    assert {*freshness.SOURCES} <= names
    assert names.isdisjoint(f"dynabench/client/{name}" for name in freshness.GENERATED)
