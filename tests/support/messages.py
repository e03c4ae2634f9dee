"""The messages that Python and templates mark for translation, as `makemessages` reads them."""

import ast
import re
from collections.abc import Iterator

from django.utils.translation.template import templatize

GETTEXT = re.compile(r"_|n?p?gettext(_lazy|_noop)?")


def is_message(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
    return GETTEXT.fullmatch(name) is not None


def literal(node: ast.AST) -> str | None:
    """Return the text of a string literal, also of a sum of literals; else None."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = literal(left), literal(right)
            return None if None in parts else "".join(map(str, parts))
    return None


def messages_of_python(source: str) -> Iterator[str]:
    """Yield the messages that Python marks for translation.

    >>> [*messages_of_python('_("Open") + ngettext("%d try", "%d tries", n)')]
    ['Open', '%d try', '%d tries']
    """
    for node in ast.walk(ast.parse(source)):
        if is_message(node):
            assert isinstance(node, ast.Call)
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
            texts = [literal(argument) for argument in node.args]
            # The first argument of pgettext is for translators.
            yield from (text for text in texts["pgettext" in name :] if text is not None)


STRING = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
CALL = re.compile(
    rf"\b(?P<name>n?p?gettext|_)\(\s*(?P<texts>{STRING}(?:\s*,\s*{STRING})*)", re.DOTALL
)


def messages_of_template(source: str) -> Iterator[str]:
    """Yield the messages of a template, by the step of `makemessages` that reads templates.

    >>> [*messages_of_template('{% load i18n %}{% translate "Open" %}')]
    ['Open']
    """
    for call in CALL.finditer(templatize(source)):
        texts = [ast.literal_eval(text) for text in re.findall(STRING, call["texts"], re.DOTALL)]
        yield from texts["pgettext" in call["name"] :]
