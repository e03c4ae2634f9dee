"""Whether answers of the API are what its schema says: operation, status, type and body.

Objects are closed here, while the schema leaves them open for keys of later versions: a key that
nobody declared is a fault.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from threading import get_ident
from typing import Any

import yaml
from jsonschema_rs import Draft202012Validator, Registry

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "docs" / "openapi-v1.yaml"
BEFORE = "/api/v1/"
NAME = "urn:api"  # of the whole schema, to which each validator refers
UNLISTED = {f"{BEFORE}{page}/" for page in ("schema", "docs", "docs/try")}  # pages about the rest
UNKNOWN = "This field doesn't exist."
METHODS = ("get", "post", "put", "patch", "delete")
Json = Mapping[str, Any]


def problems_of(method: str, path: str, status: int, kind: str, body: bytes | None) -> list[str]:
    """Return what the schema does not say of an answer.

    kind: its Content-Type. body: None where it is a stream, which nobody reads here.
    """
    if path in UNLISTED or method.lower() not in METHODS:
        return []
    template = template_of(path)
    said = f"{method} {template or path}: {status}"
    shapes = _shapes(template, method.lower(), status)
    if shapes is None:
        return [f"{said} is no answer of it"]
    kind = kind.partition(";")[0]
    if not shapes:
        return [f"{said} has a body"] if body else []
    if kind not in shapes:
        return [f"{said} is {kind or 'of no type'}, not {' or '.join(shapes)}"]
    if kind != "application/json" or body is None:
        return []
    answer = json.loads(body)
    errors = _validator(template, method.lower(), status).iter_errors(answer)
    wrong = [f"{said}: {'.'.join(map(str, one.instance_path))}: {one.message}" for one in errors]
    if status == 422 and not wrong and template:
        taken = _taken(template, method.lower())
        named = _named(answer["error"]["fields"]) - taken if taken is not None else ()
        wrong += [f"{said} blames {name!r}, which may not be sent" for name in sorted(named)]
    return wrong


def _named(fields: Mapping[str, list[str]]) -> set[str]:
    """The fields that an error is about, but for those that it calls unknown."""
    known = (name for name, said in fields.items() if not said[0].startswith(UNKNOWN))
    return {name.partition(".")[0] for name in known} - {""}


@lru_cache(maxsize=1024)
def _taken(template: str, method: str) -> frozenset[str] | None:
    """The names that a request may have, in its query, its address and its body; None: any."""
    operation = api()["paths"].get(template, {}).get(method, {})
    names = {one["name"] for one in operation.get("parameters", ())} | {"format"}
    if "weights" in names:  # each has a name of its own
        return None
    for body in operation.get("requestBody", {}).get("content", {}).values():
        names |= set(_names_in(body["schema"]))
    return frozenset(names)


def _names_in(shape: Any) -> Iterator[str]:
    """The names of the fields of a shape, and of those within them."""
    if isinstance(shape, list):
        for one in shape:
            yield from _names_in(one)
    if isinstance(shape, dict):
        if "$ref" in shape:
            yield from _names_in(api()["components"]["schemas"][shape["$ref"].rpartition("/")[2]])
        yield from shape.get("properties", {})
        for one in (*shape.get("properties", {}).values(), *shape.values()):
            yield from _names_in(one)


@cache
def api() -> dict[str, Any]:
    """The published schema with closed objects, kept in `var/` as JSON, which is read at once."""
    text = PUBLISHED.read_bytes()
    kept = ROOT / "var" / f"schema-{hashlib.sha256(text).hexdigest()[:16]}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}-{get_ident()}")  # threads may ask at once
        new.write_text(json.dumps(yaml.load(text, Loader=yaml.CSafeLoader)))
        new.replace(kept)
    found: dict[str, Any] = json.loads(kept.read_bytes())
    for shape in _objects(found):
        shape.setdefault("additionalProperties", False)
    return found


def _objects(part: Any) -> Iterator[dict[str, Any]]:
    """The shapes of objects with named fields anywhere in a part."""
    if isinstance(part, dict):
        if part.get("type") == "object" and "properties" in part:
            yield part
        part = [*part.values()]
    if isinstance(part, list):
        for one in part:
            yield from _objects(one)


@lru_cache(maxsize=1024)
def template_of(path: str) -> str | None:
    """The path of the schema that an address is of; the most literal one of several."""
    parts = path.split("/")
    fitting = [one for one in _templates().get(len(parts), []) if _fits(one, parts)]
    return "/".join(max(fitting, key=_literals)) if fitting else None


@cache
def _templates() -> dict[int, list[list[str]]]:
    """The paths in parts, by their number."""
    found: dict[int, list[list[str]]] = {}
    for path in api()["paths"]:
        found.setdefault(path.count("/") + 1, []).append(path.split("/"))
    return found


def _fits(template: list[str], parts: list[str]) -> bool:
    return all(a == b or (b and a.startswith("{")) for a, b in zip(template, parts, strict=True))


def _literals(template: list[str]) -> int:
    return sum(not part.startswith("{") for part in template)


def _shapes(template: str | None, method: str, status: int) -> Json | None:
    """Shapes of bodies by content type; empty where there is none, None for a strange status."""
    operation = api()["paths"].get(template, {}).get(method)
    if operation is None:  # nothing is there, or it knows other methods
        refused = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        return refused if status >= 400 else None
    for key in (str(status), f"{status // 100}XX"):
        if key in operation["responses"]:
            return operation["responses"][key].get("content", {})
    return {} if status == 304 else None


@cache
def _validator(template: str | None, method: str, status: int) -> Draft202012Validator:
    shape = (_shapes(template, method, status) or {})["application/json"]["schema"]
    pointed = json.loads(json.dumps(shape).replace('"#/', f'"{NAME}#/'))
    return Draft202012Validator(pointed, registry=_registry(), validate_formats=True)


@cache
def _registry() -> Registry:
    return Registry([(NAME, {"components": api()["components"]})])
