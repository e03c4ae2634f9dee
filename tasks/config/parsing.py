"""Read configurations: safe YAML with positions, and problems with suggested fixes."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20

Loc = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """A problem of a configuration with its position.

    path: the dotted path. line, column: counted from 1. fix: how to correct it.
    """

    severity: Literal["error", "warning"]
    path: str
    line: int
    column: int
    message: str
    fix: str

    def __str__(self) -> str:
        position = f"line {self.line}, column {self.column}"
        location = position
        if self.path:
            location = f"{position}, `{self.path}`"
        return f"{location}: {self.message}; {self.fix}"


class ConfigError(ValueError):
    """Raised if a configuration is invalid. `problems` lists everything that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = list(problems)


@dataclass(frozen=True)
class Finding:
    """A problem whose line and column are not known yet. loc: the keys that lead to it."""

    loc: Loc
    message: str
    fix: str


def locate_inside(loc: Loc, *steps: str | int) -> Loc:
    """Return the location reached from `loc` by these steps.

    >>> locate_inside(("input", 1), "labels")
    ('input', 1, 'labels')
    """
    return loc + steps


def format_path(loc: Iterable[str | int]) -> str:
    """Return a location as a dotted path.

    >>> format_path(("input", 1, "labels"))
    'input[1].labels'
    """
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}"
    return path.removeprefix(".")


def suggest_nearest(word: str, choices: Iterable[str]) -> str:
    """Return a suggested fix for an unknown word: the most similar choice, or all choices."""
    choices = list(choices)
    matches = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if matches:
        return f'did you mean "{matches[0]}"?'
    return f"use one of: {', '.join(choices)}"


def _build_error(mark: yaml.Mark | None, message: str, fix: str) -> ConfigError:
    """Return the error for the position at which parsing stopped; line 1 if `mark` is None."""
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return ConfigError([Problem("error", "", line, column, message, fix)])


class _Loader(yaml.SafeLoader):
    """A YAML loader without tags, anchors and aliases, which knows only JSON's scalar types.

    `no` and `2024-01-01` are therefore texts, as in the core schema of YAML 1.2 (section 10.3).
    """

    yaml_implicit_resolvers = {}
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        # Aliases could unfold a short text to gigabytes, and tags could name Python objects.
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = "anchors and aliases are not allowed"
            raise _build_error(event.start_mark, message, "write the value out")
        if getattr(event, "tag", None):
            message = f"the tag {event.tag} is not allowed"
            raise _build_error(event.start_mark, message, "remove the tag")
        # Counted while the nodes are composed, before recursion could go too deep.
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _build_error(
                event.start_mark, f"more than {MAX_DEPTH} levels", "nest less deeply"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that quotes each text that a YAML 1.1 or 1.2 parser might not read as text."""

    yaml_implicit_resolvers = {
        first: list(found) for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_SCALAR_TYPES: tuple[tuple[str, str, list[str]], ...] = (
    ("null", r"^(?:null|Null|NULL|~|)$", [*"nN~", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
)
for _kind, _pattern, _first in _SCALAR_TYPES:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), _first)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None
    if "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Return the data as YAML, which `read_yaml` reads back unchanged."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


@dataclass(frozen=True)
class Document:
    """A configuration as plain data, with the YAML nodes that have the positions."""

    data: Any
    root: yaml.Node

    def resolve_location(self, loc: Loc) -> tuple[Loc, yaml.Mark]:
        """Return the steps of `loc` that exist in the document, and the position of the last one.

        Missing keys, and names of a union's members, do not exist in the document.
        """
        # Steps that are not there are passed over, so that the mark stays at the part around them.
        node, mark, steps = self.root, self.root.start_mark, []
        for step in loc:
            if child := _find_child(node, step):
                steps.append(step)
                mark, node = child
        return tuple(steps), mark

    def build_problem(
        self, finding: Finding, severity: Literal["error", "warning"] = "error"
    ) -> Problem:
        """Return the finding as a problem, at the position of its node or of an enclosing one."""
        mark = self.resolve_location(finding.loc)[1]
        return Problem(
            severity,
            format_path(finding.loc),
            mark.line + 1,
            mark.column + 1,
            finding.message,
            finding.fix,
        )


def _find_child(node: yaml.Node, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark, item
    return None


def read_yaml(text: str, suggested_line: str = "version: 1") -> Document:
    """Parse YAML or JSON. Raises ConfigError with the position at which parsing stopped.

    suggested_line: a first line to suggest if the text has no keys.
    """
    # Parsing takes time in proportion to the text.
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _build_error(
            None, "the configuration is too large", f"keep it below {MAX_BYTES} bytes"
        )
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented with tabs; its texts hold none
    try:
        root = yaml.compose(text, Loader=_Loader)
        if not isinstance(root, yaml.MappingNode):
            mark = None
            if root:
                mark = root.start_mark
            raise _build_error(
                mark, "this should be keys and values", f"begin with `{suggested_line}`"
            )
        return Document(_convert_node(root), root)
    except yaml.reader.ReaderError as error:
        # This error has only an index into the text, from which line and column are counted.
        line = text.count("\n", 0, error.position)
        column = error.position - text.rfind("\n", 0, error.position) - 1
        mark = yaml.Mark("", 0, line, column, None, 0)
        raise _build_error(mark, "a character that is not allowed", "delete it") from None
    except yaml.MarkedYAMLError as error:
        raise _build_error(error.problem_mark, *_explain_yaml_error(error.problem or "")) from None


def _explain_yaml_error(problem: str) -> tuple[str, str]:
    """Return the parser's message in our words, and a suggested fix."""
    if "mapping values are not allowed" in problem:
        return "a colon inside a value, or wrong indentation", "put the value in quotes"
    if "'\\t'" in problem:
        return "a tab", "indent with spaces"
    if "cannot start any token" in problem or "got '?'" in problem:
        return problem, "put the value in quotes"
    if "expected a single document" in problem or "but found another document" in problem:
        return "more than one document", "remove the line `---`"
    return problem, "check the indentation, quotes and brackets here and in the line above"


def _convert_node(node: yaml.Node) -> Any:
    """Return a node as a dict, list, text, number, boolean or None. Raises ConfigError."""
    if isinstance(node, yaml.SequenceNode):
        return [_convert_node(item) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return _convert_scalar(node)
    result: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _build_error(key.start_mark, "a key must be a word", "use a plain word as key")
        # YAML takes the last of two equal keys, so that a typing error would pass unseen.
        if key.value in result:
            message = f'the key "{key.value}" is there twice'
            raise _build_error(key.start_mark, message, "remove one of the two")
        result[key.value] = _convert_node(value)
    return result


def _convert_scalar(node: yaml.Node) -> Any:
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind in ("int", "float"):
        # An int of very many digits would take long, and no key needs one.
        number = float(text) if kind == "float" or len(text) > 18 else int(text)
        if not math.isfinite(number):
            raise _build_error(node.start_mark, "the number is too large", "use a smaller one")
        return number
    try:  # JSON writes characters beyond the first plane as two halves
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        message = "half a character (a lone surrogate)"
        raise _build_error(node.start_mark, message, "write the character out") from None
