"""Rules of the house that a machine can check, each with a line that it lets pass and one not."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynabench.client import freshness
from tests.support.variables import APPS

ROOT = Path(__file__).parents[1]
GENERATED = {ROOT / "dynabench/client" / name for name in freshness.GENERATED}
PYTHON = [
    path
    for room in APPS
    for path in sorted((ROOT / room).rglob("*.py"))
    if "migrations" not in path.parts and path not in GENERATED
]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SERVICES = [path for path in PYTHON if path.stem.endswith("services")]
FORM = re.compile(r"(<form\b.*?>)(.*?)</form>", re.DOTALL)
STATE = re.compile(r'type="hidden"[^>]*\{\{|hidden_fields|form\.base\b')
FILLED = re.compile(r"as_field_group|_fields|<textarea|<select|type=.(text|number|radio|check)")

RULES = {
    "mark_safe only in the ground": (
        r"\bmark_safe\(|\|safe\b|\{% autoescape off",
        [
            p
            for p in PYTHON + TEMPLATES
            if p.parent not in (ROOT / "core/figures", ROOT / "core/text")
        ],
        "text = render_markdown(text)",
        "text = mark_safe(text)",
    ),
    "no inline style, script or handler in templates": (
        r"\sstyle=|<style|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:",
        TEMPLATES,
        "<script src=\"{% static 'js/site.js' %}\" defer></script>",
        '<p style="color: red" onclick="go()">',
    ),
    "a comment of a template ends on its line, or readers see it": (
        r"\{#(?!.*#\})",
        TEMPLATES,
        "{# Why this is so. #}",
        "{# Why this is so,",
    ),
    "forms leave it to the template to say that a field is optional": (
        r"label=.*\(optional\)",
        PYTHON,
        'label=_("Address"),',
        'label=_("Address (optional)"),',
    ),
    "save names its fields in services": (
        r"\.save\((?!update_fields=|force_insert=True|.*save=False)",
        SERVICES,
        'round.save(update_fields=["state"])',
        "round.save()",
    ),
    "pages, forms, selectors and rules write no rows": (
        r"objects\b.*\.((bulk_)?create|(get|update)_or_create|update|delete)\(|\.save\(update_fields=",
        [
            p
            for p in PYTHON
            if p.parts[len(ROOT.parts)] in ("annotation", "validation")
            and (
                p.name in ("forms.py", "page.py", "queue.py", "selectors.py", "practice.py")
                or p.name.endswith("views.py")
                or p.parent.name in ("api", "rewards", "rules", "statistics")
            )
        ],
        "values.update(said=said)",
        "Skip.objects.filter(validator=validator).delete()",
    ),
    "streams begin in downloads.lines, which opens their source before it answers": (
        r"\bStreamingHttpResponse\(",
        [p for p in PYTHON if p.name not in ("downloads.py", "event_stream.py")],
        'return lines(input_lines(version), "inputs.jsonl")',
        "return StreamingHttpResponse(input_lines(version))",
    ),
    "no address of another host in templates": (
        r"(?:src|href|action)=[\"']?(?:https?:)?//",
        TEMPLATES,
        '<a href="/help/">',
        '<script src="https://cdn.test/x.js">',
    ),
    "templates hold at most 120 characters a line": (
        r".{121}",
        TEMPLATES,
        "x" * 120,
        "x" * 121,
    ),
    "percentages of templates come from the filters of numbers": (
        r"\}\} %(?!\})|\d %(?![}\w])",
        TEMPLATES,
        "{{ share|percent }} of them",
        "{{ share }} % of them",
    ),
    "messages have no space before a percent sign": (
        r"\)[sd] %%",
        PYTHON,
        '_("%(share)s of them")',
        '_("%(share)s %% of them")',
    ),
    "the template of a field says that it is optional": (
        r"label=.*\(optional\)",
        PYTHON,
        'label=_("Address"),',
        'label=_("Address (optional)"),',
    ),
    "line ends become LF by with_lf": (
        r"replace\(\"\\r\\n\"",
        [p for p in PYTHON if p != ROOT / "core/text/words.py"],
        "text = with_lf(text)",
        'text = text.replace("\\r\\n", "\\n")',
    ),
    "no unfinished work": (
        r"TODO|FIXME|NotImplementedError|breakpoint\(|print\(.*# *debug",
        PYTHON + TEMPLATES,
        "return rows",
        "raise NotImplementedError",
    ),
    "requests to other hosts only through the guarded transport": (
        r"\brequests\.(get|post)|httpx\.(get|post|Client|AsyncClient)\(|urllib\.request",
        [
            p
            for p in PYTHON
            if p.parent != ROOT / "tasks/targets/endpoints"
            # These ask the site's own processes whether they are up.
            and p.parent != ROOT / "dynabench/operations/management/commands"
            and p != ROOT / "dynabench/client/client.py"  # runs at its users', who name the host
            # The operator names this host, in the environment.
            and p != ROOT / "evaluation/dataset_releases/publishing/zenodo.py"
        ],
        "endpoint.predict(batch, deadline_seconds=8)",
        "httpx.post(target.url)",
    ),
}
# The browser tests set a variable that deployment forbids.
BARE = {k: v for k, v in os.environ.items() if k != "DJANGO_ALLOW_ASYNC_UNSAFE"}
# A new row is complete when it is first saved.
ALLOWED = {"tasks/services.py": ["    task.save()"]}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    pattern, files, good, bad = RULES[name]
    rule = re.compile(pattern)
    assert not rule.search(good)
    assert rule.search(bad)
    found = [
        f"{name}:{number}: {line.strip()}"
        for path in files
        for name, number, line in places(rule, path)
        if line not in ALLOWED.get(name, [])
    ]
    assert not found, "\n".join(found)


PAGED = {
    # These are no lists of the page, or they link to the whole one.
    "annotation/context_picking/selectors.py": "rounds and examples among which one is drawn",
    "annotation/selectors.py": "texts that an aid compares or starts from",
    "annotation/writing/page.py": "good examples that fill the box, not a list",
    "dynabench/api_page.py": "the first sentence of a description",
    "dynabench/campaigns/templatetags/campaigns.py": "the latest; each campaign's page has all",
    "dynabench/catches/selectors.py": "the best of a round, with a link to all catches",
    "dynabench/help_pages.py": "pages to begin with; the others are behind them",
    "dynabench/manage/review_many.py": "names in one sentence",
    "dynabench/manage/setup/health.py": "what a median is of, and the days of a table",
    "dynabench/manage/setup/passages.py": "what a form sends",
    "dynabench/manage/wizard/field_forms.py": "a label that is too long",
    "dynabench/failures/selectors.py": "what is searched, and samples of what is found",
    "dynabench/people/views.py": "the first tasks, with a link to all",
    "dynabench/task_pages.py": "the first models, with a link to the leaderboard",
    "evaluation/judges/custom_metrics/selectors.py": "what a metric is tried on",
    "evaluation/judges/paraphrases/views.py": "the rows of a page, for `list_page`",
    "evaluation/submissions/selectors.py": "samples for a model that is checked",
    "leaderboard/arena/battles/selectors.py": "a pool that is too large to count",
    "leaderboard/board/page.py": "charts of the models on a page",
    "tasks/contexts/forms.py": "a preview of a file",
    "validation/decisions/filter_forms.py": "a choice that becomes a field of text",
}


def ends_at_a_limit(text):
    """Whether code takes the beginning of some rows: up to a constant, or of a query a number."""
    for node in ast.walk(ast.parse(text.strip())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("islice", "Paginator"):
            return True
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            continue
        upper = node.slice.upper
        if isinstance(upper, ast.BinOp):  # one more, which tells whether there are others
            upper = upper.left
        if node.slice.lower is not None:
            continue
        if isinstance(upper, ast.Name) and upper.id.isupper():
            return True
        is_query = re.search(r"objects|\.(all|filter|order_by)\(", ast.unparse(node.value))
        if is_query and isinstance(upper, ast.Constant) and upper.value > 1:
            return True
    return False


def test_lists_of_pages_end_where_their_rows_do():
    """A page shows rows by `core.web.lists`, whose pager reaches the last one."""
    assert not ends_at_a_limit("rows = list_page(request, models, size=LISTED)")
    assert not ends_at_a_limit("names[place:], text[:20], round.contexts.all()[:1]")
    assert ends_at_a_limit("rows = models[:LISTED]")
    assert ends_at_a_limit("rows = task.models.all()[:100]")
    assert ends_at_a_limit("page = Paginator(rows, 100)")
    found = set()
    for path in PYTHON:
        text = path.read_text()
        shows = "HttpRequest" in text or path.stem.endswith(("selectors", "page", "forms"))
        is_page = shows or path.parent.name == "templatetags"
        if is_page and path.parent.name != "api" and ends_at_a_limit(text):
            found.add(str(path.relative_to(ROOT)))
    found -= {"core/web/lists.py", "core/web/downloads.py"}
    assert found == set(PAGED)


def places(rule, path):
    """File, number and text of each line where a match ends; an HTML tag may span lines."""
    text = path.read_text()
    lines = text.split("\n")
    for match in rule.finditer(text):
        number = text.count("\n", 0, match.end())
        yield str(path.relative_to(ROOT)), number + 1, lines[number]


def test_the_web_process_loads_no_model_library_and_no_client():
    code = (
        "import django, sys; django.setup(); import importlib; "
        "from django.conf import settings; importlib.import_module(settings.ROOT_URLCONF); "
        "print([m for m in ('torch', 'transformers', 'onnxruntime', 'numpy', 'tqdm', "
        "'dynabench.client') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "dynabench.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_files_stay_short():
    long = [p for p in PYTHON if len(p.read_text().splitlines()) > 600]
    assert not long


def test_functions_stay_short():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in PYTHON
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 80
    ]
    assert not long, "\n".join(long)


ALWAYS_WRITES = {"bulk_create", "bulk_update", "get_or_create", "update_or_create"}
NAMED_WRITES = {"create", "update"}  # with field names; a dict's `update` has none


def written_lines(code):
    """The lines that write rows. Files have names where a model's `save` and `delete` have none."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        named = {one.arg for one in node.keywords}
        match node.func.attr:
            case name if name in ALWAYS_WRITES:
                yield node.lineno
            case name if name in NAMED_WRITES and named and not node.args:
                yield node.lineno
            case "save" if not node.args and "commit" not in named:
                yield node.lineno
            case "delete" if not node.args and not named:
                yield node.lineno


def test_only_services_and_the_modules_that_the_docs_name_write_rows():
    assert list(written_lines("round.save()")) == list(written_lines("rows.delete()")) == [1]
    assert not list(
        written_lines("file.save(name, content); told.update(more); form.save(commit=False)")
    )
    section = (
        (ROOT / "docs/architecture.md").read_text().split("## Who writes")[1].split("\n## ")[0]
    )
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", section)
    found = {
        str(path.relative_to(ROOT)): [*written_lines(path.read_text())]
        for path in PYTHON
        if not path.stem.endswith("services") and (ROOT / "dynabench/client") not in path.parents
    }
    writing = {path for path, lines in found.items() if lines}
    unnamed = {path for path in writing if not path.startswith(tuple(named))}
    idle = {name for name in named if not any(path.startswith(name) for path in writing)}
    assert not unnamed, "neither services nor in docs/architecture.md: " + ", ".join(
        sorted(unnamed)
    )
    assert not idle, "these write no rows any more: " + ", ".join(sorted(idle))


def test_no_test_module_is_imported():
    """Helpers lie in tests/support, so that a test module can be read and moved by itself."""
    rule = re.compile(
        r"^ *from tests[\w.]*\.test_\w+ import|^ *from tests[\w.]* import test_", re.M
    )
    assert rule.search("from tests.web.test_judge import write")
    found = [path for path in (ROOT / "tests").rglob("*.py") if rule.search(path.read_text())]
    assert not found, "\n".join(str(path.relative_to(ROOT)) for path in found)


def test_every_requirement_is_pinned_and_explained():
    for name in (
        "requirements-web.txt",
        "requirements.txt",
        "requirements-storage.txt",
        "requirements-dev.txt",
    ):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[\w.\[\]-]+==[\w.]+ +# .+", line), f"{name}: {line}"


def test_deploy_checks_are_clean_with_production_settings(tmp_path):
    home = tmp_path / "home"
    production = {
        "DYNABENCH_HOME": str(home),
        "SECRET_KEY": "x9!" + "kfj3-Lw0_" * 8,
        "ALLOWED_HOSTS": "bench.example.org",
        "DATABASE_URL": f"sqlite:///{home}/deploy.sqlite3",
        "HTTPS": "1",
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**BARE, "DEBUG": "0", **production},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert home.stat().st_mode & 0o777 == 0o700
    home.chmod(0o755)  # as a version before made it
    required = ("ALLOWED_HOSTS", "DATABASE_URL")
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"],
        cwd=ROOT,
        env={
            name: value
            for name, value in {**BARE, "DEBUG": "0", **production}.items()
            if name not in {*required, "SECRET_KEY"}
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert all(f"{name} is not set" in done.stderr for name in required)
    assert "dynabench.W004" in done.stderr
    assert "dynabench.W005" in done.stderr


@pytest.mark.parametrize("first", ["core.web.api", "evaluation.jobs"])
def test_the_api_may_be_imported_first(first):
    """Django REST framework imports by settings what imports it: whoever comes first must work."""
    code = f"import django; django.setup(); import {first}"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "dynabench.settings"},
        check=True,
    )


def unsafe_forms(template: str) -> list[str]:
    """Forms that hold what was read beside what people fill, and that browsers restore."""
    return [
        begins
        for begins, rest in FORM.findall(template)
        if STATE.search(rest) and FILLED.search(rest) and 'autocomplete="off"' not in begins + rest
    ]


def test_browsers_do_not_restore_a_text_beside_another_state():
    state = '<input type="hidden" name="at" value="{{ at }}"><textarea name="say"></textarea>'
    assert unsafe_forms(f'<form method="post">{state}</form>')
    assert not unsafe_forms(f'<form method="post" autocomplete="off">{state}</form>')
    constant = '<input type="hidden" name="mine" value="1"><select name="side"></select>'
    assert not unsafe_forms(f"<form>{constant}</form>")
    found = {path.name: unsafe_forms(path.read_text()) for path in TEMPLATES}
    assert not {name: forms for name, forms in found.items() if forms}


def test_the_test_command_names_files_that_exist() -> None:
    """pytest runs nothing of a lane whose list has a file that was renamed."""
    lists = ("pure", "on_postgres", "on_both")
    cuts = "".join(f"/^{name}=(/,/^)/p;" for name in lists)
    names = " ".join(f'"${{{name}[@]}}"' for name in lists)
    script = f"source <(sed -n '{cuts}' test); printf '%s\\n' {names}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = done.stdout.split()
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []
