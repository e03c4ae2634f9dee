"""The client's plain methods, those that make one request, as the text of a module."""

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.client_types import name_class, write_type

Schema = Mapping[str, Any]
HEAD = '''"""The methods that make one request, as `methods.toml` names them."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Requesting


class Plain(Requesting):
    """The methods that make one request and return the JSON of its answer."""
'''
INDENT = " " * 4
WIDTH = 100


@dataclass(frozen=True)
class Operation:
    """An operation of the API: what is sent, and what is answered.

    path: below /api/v1/. path_types, fields: types in Python, by name; fields are those of the
    query or of the body. body: the name of the body's class. result: "None" for no answer.
    """

    verb: str
    path: str
    summary: str
    path_types: Mapping[str, str]
    fields: Mapping[str, str]
    body: str
    result: str
    is_paged: bool


@dataclass
class Method:
    """A method of the client: its signature, and where each argument goes."""

    name: str
    operation: Operation
    note: str
    parameters: list[str] = field(default_factory=list)
    path_names: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)


def write_methods(schema: Schema, methods: Schema) -> str:
    """Return the text of a module with the methods that a table names.

    schema: of the API. methods: sections of signatures by operation, as in `methods.toml`. Raises
    ValueError for what no operation has.
    """
    operations = dict(read_operations(schema))
    notes = methods.get("notes", {})
    parts, names = [HEAD], set()
    for section, signatures in methods.items():
        if section == "notes":
            continue
        parts.append(f"{INDENT}# {section}\n")
        for operation_id, listed in signatures.items():
            if operation_id not in operations:
                raise ValueError(f"methods.toml: the API has no operation {operation_id!r}.")
            # One operation may be two methods, each of which sends other fields.
            for signature in [listed] if isinstance(listed, str) else listed:
                method = read_signature(signature, operations[operation_id], notes)
                if method.name in names:
                    raise ValueError(f"methods.toml: {method.name} stands there twice.")
                names.add(method.name)
                parts.append(textwrap.indent(write_method(method), INDENT))
    if unknown := notes.keys() - names:
        raise ValueError(
            f"methods.toml: notes to {', '.join(sorted(unknown))}, which is no method."
        )
    return "\n".join(parts)


def read_operations(schema: Schema) -> Iterator[tuple[str, Operation]]:
    """Yield all operations of a schema by id."""
    for path, operations in schema["paths"].items():
        for verb, operation in operations.items():
            yield operation["operationId"], read_operation(path, verb, operation, schema)


def read_operation(path: str, verb: str, operation: Schema, schema: Schema) -> Operation:
    """Return an operation of a schema as the client needs it."""
    schemas = schema["components"]["schemas"]
    path_types, fields = {}, {}
    for parameter in operation.get("parameters", ()):
        kind = write_argument_type(parameter["schema"], schemas)
        if parameter["in"] == "path":
            path_types[parameter["name"]] = kind
        elif parameter["in"] == "query":
            fields[parameter["name"]] = kind
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    body = reference.rpartition("/")[2]
    if body:
        for name, part in schemas[body].get("properties", {}).items():
            fields[name] = write_argument_type(part, schemas)
    result, is_paged = read_result(operation["responses"], schemas)
    summary = operation["description"].partition("\n\n")[0]
    below = path.removeprefix("/api/v1")
    body_class = name_class(body) if body else ""
    return Operation(verb.upper(), below, summary, path_types, fields, body_class, result, is_paged)


def read_result(responses: Schema, schemas: Schema) -> tuple[str, bool]:
    """Return the type of an answer of success, and whether it is a page of a list."""
    kinds = set()
    for status, response in responses.items():
        if status.startswith("2"):
            content = response.get("content", {})
            kinds.add(write_answer_type(content.get("application/json", {}), schemas))
    # The one that has an answer first, and None where there may be none.
    ordered = sorted(kinds, key=lambda kind: kind == "None")
    is_paged = ordered[0].startswith("page of ")
    return " | ".join(kind.removeprefix("page of ") for kind in ordered), is_paged


def write_answer_type(content: Schema, schemas: Schema) -> str:
    """Return the type of an answer; "None" where there is none, "page of list[…]" of a page."""
    if "schema" not in content:
        return "None"
    name = content["schema"].get("$ref", "").rpartition("/")[2]
    fields = schemas.get(name, {}).get("properties", {})
    if {"results", "next"} <= fields.keys():
        return f"page of {write_type(fields['results'], schemas, 'types.')}"
    return write_type(content["schema"], schemas, "types.")


def write_argument_type(part: Schema, schemas: Schema) -> str:
    """Return the type of an argument: as of a field, but wide where Python has more kinds."""
    kind = write_type(part, schemas, "types.")
    if part.get("format") == "date":
        return kind.replace("str", "date")
    for concrete, abstract in (("list[", "Sequence["), ("dict[", "Mapping[")):
        if kind.startswith(concrete):
            return abstract + kind.removeprefix(concrete)
    return kind


def read_signature(signature: str, operation: Operation, notes: Mapping[str, str]) -> Method:
    """Return a method of an operation.

    signature: such as `invite(task, email, role, days=14)`: first what stands in the path, in its
    order and under a name of the client's, then fields of the body or the query. `**plan` takes the
    other fields. An annotation replaces the type that the schema has. Raises ValueError.
    """
    function = ast.parse(f"def {signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    method = Method(function.name, operation, notes.get(function.name, ""))
    arguments = function.args
    # Python lists defaults for the last arguments only.
    defaults: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    defaults += arguments.defaults
    path_types = list(operation.path_types)
    ordered = _order_path(operation.path, path_types)
    for argument, default in zip(arguments.args, defaults, strict=True):
        if len(method.path_names) < len(ordered):
            kind = operation.path_types[ordered[len(method.path_names)]]
            method.path_names.append(argument.arg)
            method.parameters.append(_write_parameter(argument, kind, default))
        else:
            _add_field(method, argument, default)
    if len(method.path_names) < len(ordered):
        raise ValueError(f"methods.toml: {signature} lacks a part of {operation.path}.")
    if arguments.kwonlyargs:
        method.parameters.append("*")
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            _add_field(method, argument, default)
    if rest := arguments.kwarg:
        kind = f"types.{operation.body}"
        if rest.annotation:
            kind = ast.unparse(rest.annotation)
        method.parameters.append(f"**{rest.arg}: Unpack[{kind}]")
        method.sent.append(f"**{rest.arg}")
    return method


def _order_path(path: str, names: list[str]) -> list[str]:
    """Return the names of a path's parameters in the order in which they stand in it."""
    return sorted(names, key=lambda name: path.index(f"{{{name}}}"))


def _add_field(method: Method, argument: ast.arg, default: ast.expr | None) -> None:
    """Add an argument that is sent as a field of the same name. Raises ValueError."""
    fields = method.operation.fields
    if argument.arg not in fields:
        known = ", ".join(fields) or "none"
        raise ValueError(f"methods.toml: {method.name} sends {argument.arg!r}; there is {known}.")
    method.parameters.append(_write_parameter(argument, fields[argument.arg], default))
    method.sent.append(argument.arg)


def _write_parameter(argument: ast.arg, kind: str, default: ast.expr | None) -> str:
    """Return an argument as it stands in a signature."""
    if argument.annotation:
        kind = ast.unparse(argument.annotation)
    if default is None:
        return f"{argument.arg}: {kind}"
    value = ast.unparse(default)
    if value == "None" and not kind.endswith("None"):
        kind += " | None"
    return f"{argument.arg}: {kind} = {value}"


def write_method(method: Method) -> str:
    """Return the text of a method."""
    operation = method.operation
    listed = ", ".join(["self", *method.parameters])
    head = f"def {method.name}({listed}) -> Flow[{operation.result}]:"
    if len(head) > WIDTH - len(INDENT):
        lines = "".join(f"\n{INDENT}{parameter}," for parameter in ["self", *method.parameters])
        head = f"def {method.name}({lines}\n) -> Flow[{operation.result}]:"
    body = [write_docstring(method), write_call(method)]
    return "\n".join(["@method", head, *(textwrap.indent(part, INDENT) for part in body), ""])


def write_docstring(method: Method) -> str:
    """Return a docstring: what the API says of the operation, and the table's note."""
    paragraphs = []
    for text in (method.operation.summary, method.note):
        if text:
            paragraphs.append(textwrap.fill(" ".join(text.split()), WIDTH - 2 * len(INDENT)))
    text = "\n\n".join(paragraphs)
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def write_call(method: Method) -> str:
    """Return the statement that makes the request."""
    operation = method.operation
    address = operation.path
    ordered = _order_path(address, list(operation.path_types))
    for name, argument in zip(ordered, method.path_names, strict=True):
        address = address.replace(f"{{{name}}}", f"{{{argument}}}")
    arguments = [f'f"{address}"' if method.path_names else f'"{address}"']
    if operation.verb == "GET":
        arguments += [f"{name}={_write_value(method, name)}" for name in method.sent]
        call = "_iterate_pages" if operation.is_paged else "_get"
        return f"return self.{call}({', '.join(arguments)})"
    arguments.insert(0, f'"{operation.verb}"')
    if len(method.sent) == 1 and method.sent[0].startswith("**"):
        arguments.append(method.sent[0].removeprefix("**"))
    elif method.sent:
        pairs = []
        for name in method.sent:
            is_rest = name.startswith("**")
            pairs.append(name if is_rest else f'"{name}": {_write_value(method, name)}')
        arguments.append(f"{{{', '.join(pairs)}}}")
    return f"return self._write({', '.join(arguments)})"


def _write_value(method: Method, name: str) -> str:
    """Return the expression for a field that is sent: as JSON has it, or as a query."""
    kind = method.operation.fields[name]
    if kind.startswith("Sequence["):
        # JSON knows lists only.
        return f"list({name})"
    if kind.startswith("date"):
        return f"{name}.isoformat() if {name} else None"
    if kind == "bool" and method.operation.verb == "GET":
        # As a form does: what is not ticked is left out.
        return f"{name} or None"
    return name
