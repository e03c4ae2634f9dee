"""Every word that a page shows goes through a catalogue: a look at templates and at Python.

Each rule has what it lets pass and what not. Nothing here knows Django or a catalogue.
"""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from core.text.words import gettext_noop
from tests.support.variables import APPS

ROOT = Path(__file__).parents[1]
TEMPLATES = sorted(
    path
    for path in (ROOT / "templates").rglob("*")
    if path.suffix in (".html", ".txt") and path.name != "styleguide.html"  # for developers
)
# The API, commands and the admin speak English.
ENGLISH = re.compile(r"/(api|admin|management|migrations|client)/|[/_](api|admin)\.py$")
PYTHON = [
    path
    for room in APPS
    for path in sorted((ROOT / room).rglob("*.py"))
    if not ENGLISH.search(f"/{path.relative_to(ROOT)}")
]

# What is the same in every language.
NAMES = re.compile(
    r"\b(Dynabench|API|UTC|MIT|CSV|JSON|JSONL|BibTeX|LaTeX|Every Eval Ever"
    r"|SHA-256|kB|MB|GB|s|ms|v|κ)\b"
)
TRANSLATED = r"\{% blocktranslate.*?\{% endblocktranslate %\}"
CLASS = r"\{% block width %\}\w+\{% endblock %\}"
COMMENTS = r"\{#.*?#\}|\{% comment.*?\{% endcomment %\}"
TAGS = re.compile(rf"{COMMENTS}|{TRANSLATED}|{CLASS}|\{{%.*?%\}}|\{{\{{.*?\}}\}}", re.DOTALL)
SPOKEN = re.compile(r'\s(?:aria-label|title|placeholder|alt|data-label|data-waiting)="([^"]*)"')
BUTTON = re.compile(r'<input(?=[^>]*\stype="(?:submit|button)")[^>]*\svalue="([^"]*)"')
CODE = re.compile(r"<(script|code|pre|kbd)\b.*?</\1>|<text\b[^>]*>\w</text>", re.DOTALL)
FILTER = re.compile(r"""\|(?:pluralize\b|(?:default|default_if_none|yesno):["'])[^|}%]*""")
NO_WORDS = re.compile(r"""\|yesno:(["'])(true,false|\w+\.html,\w+\.html)\1|\|default:'en'""")
INCLUDED = re.compile(r"""\{% (?:include|with) [^%]*=(["'][A-Z][^"']*["'])""")


def has_words(text: str) -> bool:
    return any(map(str.isalpha, NAMES.sub("", unescape(text))))


def bare(template: str) -> list[str]:
    """The words of a template that no catalogue knows.

    >>> bare('<p title="Why?">{% translate "Yes" %} or <code>no</code></p>')
    ['Why?', 'or']
    """
    left = TAGS.sub("", template)
    spoken = [*SPOKEN.findall(left), *BUTTON.findall(left)]
    texts = re.sub(r"<[^>]*>", "\n", CODE.sub("", left)).splitlines()
    return [text.strip() for text in (*spoken, *texts) if has_words(text)]


def bare_in_tags(template: str) -> list[str]:
    """Words within filters and tags, and English plurals.

    >>> bare_in_tags('{{ a|default:_("none") }} {{ a|default:"some" }} task{{ n|pluralize }}')
    ['|default:"some" ', '|pluralize ']
    """
    template = re.sub(COMMENTS, "", template, flags=re.DOTALL)
    filters = (
        found
        for found in FILTER.findall(template)
        if has_words(found.partition(":")[2] or found) and not NO_WORDS.match(found)
    )
    return [*filters, *INCLUDED.findall(template)]


def test_templates_hold_no_bare_words():
    texts = {path: path.read_text() for path in TEMPLATES}
    found = {path: [*bare(text), *bare_in_tags(text)] for path, text in texts.items()}
    assert not {path: words for path, words in found.items() if words}


@pytest.mark.parametrize(
    "good",
    [
        '<p>{% translate "Yes" %} · {{ name }} <code>a = b</code> 3 ms <kbd>N</kbd></p>',
        "{% blocktranslate trimmed with n=ids|length %}\n{{ n }} tasks\n{% endblocktranslate %}",
        '<a title="{% translate \'Close\' %}" href="/help/" class="button">&rsaquo;</a>',
        '{# Words for us. #}{% comment %}`name` is shown.{% endcomment %}<svg viewBox="0 0 9 9"/>',
        '<script src="x.js" defer></script><input type="text" name="q" value="{{ q }}">',
    ],
)
def test_a_template_may_hold(good):
    assert not bare(good)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("<p>Yes</p>", "Yes"),
        ('{% translate "Open" %} until <time>{{ day }}</time>', "until"),
        ("{% if a %}one{% endif %}", "one"),
        ('<nav aria-label="Main"></nav>', "Main"),
        ('<img alt="A picture of {{ name }}">', "A picture of"),
        ('<input name="go" type="submit" value="Send">', "Send"),
        (
            "{% blocktranslate %}a{% endblocktranslate %} b "
            "{% blocktranslate %}c{% endblocktranslate %}",
            "b",
        ),
        ("<svg><title>A chart</title></svg>", "A chart"),
    ],
)
def test_a_template_may_not_hold(bad, words):
    assert bare(bad) == [words]


@pytest.mark.parametrize(
    "good",
    [
        '{{ names|join:", "|default:_("none") }}',
        '{% extends request.htmx|yesno:"part.html,base.html" %}',
        "aria-pressed=\"{{ on|yesno:'true,false' }}\" lang=\"{{ LANGUAGE_CODE|default:'en' }}\"",
        "{{ sign|default:\"–\" }}{{ on|yesno:'0,1' }}",
        '{% include "_key.html" with name=_("The key") part="key" %}',
    ],
)
def test_a_tag_may_hold(good):
    assert not bare_in_tags(good)


@pytest.mark.parametrize(
    "bad",
    [
        '{{ names|default:"none" }}',
        "task{{ n|pluralize }}",
        'quer{{ n|pluralize:"y,ies" }}',
        '{{ on|yesno:"on,off" }}',
        '{% include "_key.html" with name="The key" %}',
    ],
)
def test_a_tag_may_not_hold(bad):
    assert bare_in_tags(bad)


def is_bare(node: ast.expr) -> bool:
    """Whether an expression is words that no catalogue knows."""
    if isinstance(node, ast.JoinedStr):
        return any(map(is_bare, node.values))
    if isinstance(node, ast.BinOp):
        return is_bare(node.left) or (isinstance(node.op, ast.Add) and is_bare(node.right))
    if isinstance(node, ast.IfExp):
        return is_bare(node.body) or is_bare(node.orelse)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return is_bare(node.func.value)  # "…".format(…)
    if isinstance(node, ast.List | ast.Tuple):
        return any(map(is_bare, node.elts))
    if isinstance(node, ast.Dict):
        return any(map(is_bare, node.values))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and has_words(node.value)


def shown(tree: ast.AST) -> Iterator[ast.expr]:
    """What becomes a message, an error, or the words around a field of a form."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if re.fullmatch(r"messages\.(success|error|info|warning)", name):
                yield from node.args[1:2]
            elif name.endswith("ValidationError"):
                yield from node.args[:1]
            elif name.startswith("forms."):
                words = ("label", "help_text", "empty_label", "error_messages")
                yield from (word.value for word in node.keywords if word.arg in words)
        elif isinstance(node, ast.ClassDef) and node.name == "Meta":
            for line in node.body:
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) in (
                    "labels",
                    "help_texts",
                ):
                    yield line.value


def untold(source: str) -> list[str]:
    """The words of a Python file that no catalogue knows, with their lines."""
    return [f"{n.lineno}: {ast.unparse(n)}" for n in shown(ast.parse(source)) if is_bare(n)]


def test_python_shows_no_bare_words():
    found = {path: untold(path.read_text()) for path in PYTHON}
    assert not {path: words for path, words in found.items() if words}


@pytest.mark.parametrize(
    "good",
    [
        'messages.success(request, _("Round %(number)d is planned.") % {"number": 1})',
        "messages.error(request, str(error))",
        'raise ValidationError(_("Choose a date"), code="date")',
        "raise ValidationError([str(problem) for problem in problems])",
        'forms.CharField(label=_("Name"), help_text=format_lazy(_("1 to {most}"), most=9))',
        'models.CharField(help_text="Markdown.")',
        'class Meta:\n    labels = {"name": _("Name")}',
    ],
)
def test_python_may_say(good):
    assert not untold(good)


@pytest.mark.parametrize(
    "bad",
    [
        'messages.success(request, "Saved.")',
        'messages.info(request, f"Round {number} is planned.")',
        'messages.error(request, "%s is gone." % name)',
        'raise ValidationError("Choose a date" if late else _("Choose"))',
        'raise forms.ValidationError(["Choose a date"])',
        'forms.CharField(label="Name")',
        'forms.CharField(help_text="1 to {}".format(9))',
        'forms.CharField(error_messages={"required": "Choose one"})',
        'class Meta:\n    help_texts = {"name": "What it is for"}',
    ],
)
def test_python_may_not_say(bad):
    assert len(untold(bad)) == 1


def test_a_marked_word_is_itself():
    assert gettext_noop("open") == "open"
