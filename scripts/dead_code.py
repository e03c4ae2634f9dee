"""Functions, methods and classes that nothing in the product uses; exit status 1 if there are any.

Tests use nothing here: code that only they call is dead too. A name that stands in a template, in a
string (an address, a setting, a column of the admin), in a table of data or in the pages of the
client is in use.
"""

import ast
import re
import sys
from itertools import chain, product
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

from scripts.repository import PACKAGES  # noqa: E402

# Frameworks call these by their names.
HOOKS = (
    *("clean_*", "get_*", "has_*_permission", "__getattr__", "Media", "process_*"),  # Django
    "_get_session_from_db",  # its sessions
    *("authenticate", "authenticate_header", "has_permission", "patch", "validate_*"),  # DRF
    "map_serializer",  # drf-spectacular
    *("extract_*", "is_reauthentication_required", "pre_social_login"),  # allauth
    *("map_serializer", "password_change"),  # drf-spectacular, Django's admin site
    *("delete_model", "history_view", "lookups", "save_*", "view_on_site"),  # its admin
    *("ignore_aliases", "initialize", "readinto", "seekable"),  # PyYAML, hatchling, io
    *("_keepalive_after", "finish_request", "gettimeout"),  # gunicorn
)
DECORATORS = (
    *("@model_validator*", "@register*"),
    "@questions.*.answer",  # core.questions
)


def sources(folder: str) -> list[Path]:
    return [p for p in (ROOT / folder).rglob("*.py") if "migrations" not in p.parts]


def names_in_text() -> set[str]:
    """Words of templates and tables, of the product's strings and of the pages of the client."""
    texts = [p.read_text() for p in (ROOT / "templates").rglob("*.html")]
    for folder, kind in product(PACKAGES, ("json", "toml", "yaml", "yml", "csv")):
        texts += [p.read_text() for p in (ROOT / folder).rglob(f"*.{kind}")]
    texts += [(ROOT / "docs" / name).read_text() for name in ("client.md", "owners.md")]
    for path in chain.from_iterable(map(sources, PACKAGES)):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
        strings = (n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        texts += [n.value for n in strings if id(n) not in docstrings]
    return set(re.findall(r"[A-Za-z_]\w*", "\n".join(texts)))


def stands_alone(path: Path, line: int) -> bool:
    """Whether no base class and no decorator can have taken note of this class."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.lineno == line:
            return not node.bases and not node.decorator_list
    return False


def main() -> int:
    vulture = Vulture(ignore_names=list(HOOKS), ignore_decorators=list(DECORATORS))
    files = [ROOT / "manage.py", *chain.from_iterable(map(sources, (*PACKAGES, "bench")))]
    vulture.scavenge([str(path) for path in files])
    used = names_in_text()
    dead = [
        item
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ in ("function", "method", "property", "class")
        and item.name not in used
        and Path(item.filename).relative_to(ROOT).parts[0] in PACKAGES
        and (item.typ != "class" or stands_alone(Path(item.filename), item.first_lineno))
    ]
    for item in dead:
        where = Path(item.filename).relative_to(ROOT)
        print(f"{where}:{item.first_lineno}: {item.name} is not used")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
