"""Every name that a template reads is one that the code, or a template, provides.

Django shows an unknown name as nothing at all, so a renamed attribute disappears from a page in
silence. A name counts as provided if it stands anywhere in the code as an identifier or as a string
of one word: this finds what was renamed, without following types.
"""

import ast
import re
from datetime import datetime
from functools import cache
from pathlib import Path

import django
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PACKAGES = ("core", "tasks", "annotation", "validation", "evaluation", "leaderboard", "dynabench")
SITE_PACKAGES = Path(django.__file__).parents[1]
LIBRARIES = ("allauth", "django_htmx", "drf_spectacular", "rest_framework")
LIBRARIES += tuple(f"django/{name}" for name in ("contrib", "forms", "template", "utils", "views"))
TAG = re.compile(r"{%-?\s*(.*?)\s*-?%}|{{\s*(.*?)\s*}}", re.DOTALL)
STRING = re.compile(r"""_?\(?"(?:\\.|[^"\\])*"\)?|_?\(?'(?:\\.|[^'\\])*'\)?""")
PATH = re.compile(r"(?<![\w.:\-|])[A-Za-z_]\w*(?:\.\w+)*")
WORDS_OF_TAGS = {
    "and", "as", "asvar", "by", "context", "count", "for", "from", "if", "in", "is", "not", "only",
    "or", "reversed", "silent", "trimmed", "with", "None", "True", "False", "on", "off",
}  # fmt: skip
TAGS_WITHOUT_NAMES = {"load", "block", "endblock", "extends", "now", "partial", "partialdef"}


@cache
def list_provided_names() -> frozenset[str]:
    """Return the identifiers and one-word strings of the code and of the libraries we dress."""
    names = {*dir(str), *dir(dict), *dir(list), *dir(datetime)}
    folders = [ROOT / package for package in PACKAGES]
    folders += [SITE_PACKAGES / name for name in LIBRARIES]
    for folder in folders:
        for path in folder.rglob("*.py"):
            if not {"migrations", "locale", "tests"} & set(path.relative_to(folder).parts):
                names |= find_identifiers(path.read_text())
    return frozenset(names)


def find_identifiers(source: str) -> set[str]:
    """Return the identifiers of a module, and its strings that could be one."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg | ast.keyword):
            names.add(node.arg or "")
        elif isinstance(node, ast.Constant) and str(node.value).isidentifier():
            # With what f"{name}_form" leaves of a name, "_form".
            names.add(str(node.value))
    return names


def find_read_names(text: str) -> set[str]:
    """Return each name that a template reads: variables, and what follows a dot."""
    names: set[str] = set()
    for tag, expression in TAG.findall(without_comments(text)):
        words = (expression or tag).split()
        if not words or (tag and words[0] in TAGS_WITHOUT_NAMES):
            continue
        inside = expression or tag[len(words[0]) :]
        inside = STRING.sub(" ", inside)
        inside = re.sub(r"\|\w+", "|", inside)  # filters
        inside = re.sub(r"[A-Za-z_]\w*=", " ", inside)  # names of arguments
        for path in PATH.findall(inside):
            names |= {name for name in path.split(".") if not name.isdigit()}
    return names - WORDS_OF_TAGS


def without_comments(text: str) -> str:
    """Return a template without what it says to its readers only."""
    text = re.sub(r"{#.*?#}", "", text)
    return re.sub(r"{%\s*comment.*?endcomment\s*%}", "", text, flags=re.DOTALL)


def find_made_names(text: str) -> set[str]:
    """Return the names that a template gives itself, or a part that it includes."""
    names = set(re.findall(r"(?<![\w.\"'-])([A-Za-z_]\w*)=", text))
    names |= set(re.findall(r"\bas(?:var)? (\w+)", text))
    for targets in re.findall(r"{%\s*for\s+(.*?)\s+in\s", text):
        names |= set(re.findall(r"\w+", targets))
    return names


TEMPLATES = sorted(
    path for path in (ROOT / "templates").rglob("*") if path.suffix in (".html", ".txt")
)


@cache
def list_made_names() -> frozenset[str]:
    """Return the names that any template gives, for itself or for what it includes."""
    made: set[str] = set()
    for path in TEMPLATES:
        made |= find_made_names(path.read_text())
    return frozenset(made)


def is_provided(name: str) -> bool:
    """Return whether the code or a template gives a name, also as Django derives it."""
    field = re.fullmatch(r"get_(\w+)_display|(\w+)_id", name)
    if field is not None:
        name = field[1] or field[2]
    if name in list_provided_names() or name in list_made_names():
        return True
    # Headers are read in lower case with underscores: `request.headers.sec_fetch_site`.
    if name.startswith("sec_"):
        return True
    first, _, last = name.rpartition("_")
    return first in list_provided_names() and f"_{last}" in list_provided_names()


def test_what_templates_read_is_provided() -> None:
    unknown = {}
    for path in TEMPLATES:
        names = sorted(name for name in find_read_names(path.read_text()) if not is_provided(name))
        if names:
            unknown[str(path.relative_to(ROOT))] = names
    assert not unknown


def test_a_renamed_attribute_is_found() -> None:
    loop = '{% for row in table.lines_of_old %}{{ row.sum|default:"x.y" }}{% endfor %}'
    text = loop + '{% translate "a b" %}{# {{ old }} #}'
    assert find_read_names(text) == {"row", "table", "lines_of_old", "sum"}
    assert not is_provided("lines_of_old")
    assert is_provided("get_state_display")
