"""The pages for people say what is true: links, files, commands, options, variables."""

import ast
import os
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class
from packaging.version import Version

from leaderboard.people.badges import BADGES
from tests.support.old_databases import RELEASES, VERSION
from tests.support.variables import APPS, variables

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# Read by libraries, not by us.
FOREIGN = {"SSL_CERT_FILE", "HF_HOME", "HF_HUB_OFFLINE", "PIP_EXTRA_INDEX_URL", "LOCAL_API_KEY"}
FOREIGN |= {"ANYMAIL_MAILGUN_API_KEY"}  # one of those that django-anymail knows
FOREIGN |= {"PATH", "PYTHONPATH", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"}
FOREIGN |= {"RAY_TLS_CA_CERT", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_USE_TLS"}
FOREIGN |= {"RAY_USAGE_STATS_ENABLED"}
FOREIGN |= {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"}
ENDINGS = ["py", "md", "html", "js", "css", "toml", "txt", "yaml", "yml", "jsonl", "json", "sh"]
TEXT = {"", *(f".{ending}" for ending in ENDINGS)}
FILE = rf"`((?:[\w.-]+/)+[\w.-]+\.(?:{'|'.join(ENDINGS)}))(?:::(\w+))?`"
NAME_IN_FILE = r"`([\w./-]+\.py)` `(\w+)`"
TEST = r"`(tests/[\w/]+\.py)(?:::(\w+))?`"
# In pieces, so that this file does not hold them.
FORBIDDEN = (
    *("/wo" + "rk/", "/opt/" + "wheels", "TO" + "DO"),
    *("pypi" + ".org", "download.pytorch" + ".org", "registry.npmjs" + ".org", "npmjs" + ".com"),
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_one_version_is_told_and_the_release_before_it_is_kept():
    headings = re.findall(r"(?m)^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text())
    assert headings[:2] == [Version(VERSION).base_version, RELEASES[-1].name]
    client = tomllib.loads((ROOT / "dynabench/client/pyproject.toml").read_text())
    assert client["project"]["version"] == VERSION


def project_files() -> Iterator[Path]:
    """Text files of the checkout, without what is made or vendored."""
    skipped = {"var", "vendor", "staticfiles", "build", "__pycache__"}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [n for n in folders if n not in skipped and (n[0] != "." or n == ".ci")]
        texts = (name for name in names if name[0] != "." and Path(name).suffix in TEXT)
        yield from (Path(folder, name) for name in texts)


def slug(heading: str) -> str:
    """The anchor that a heading gets.

    >>> slug("Small `torch`, too")
    'small-torch-too'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^```.*?^```", "", text))


@each_page
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if file.parent.name == "pictures" and not file.parent.exists():
            continue
        assert file.exists(), f"{page.name}: {target} does not exist"
        if anchor:
            headings = re.findall(r"(?m)^#+ (.+)$", file.read_text())
            assert anchor in map(slug, headings), f"{page.name}: {target} has no such heading"


@each_page
def test_named_files_and_tests_exist(page: Path) -> None:
    for name, test in re.findall(FILE, page.read_text()):
        if name.startswith("var/"):
            continue
        assert (ROOT / name).exists(), f"{page.name}: there is no {name}"
        found = not test or f"def {test}(" in (ROOT / name).read_text()
        assert found, f"{page.name}: there is no {name}::{test}"


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """The functions, classes and constants of a module, and the members of its classes.

    >>> [*defined(ast.parse("A = 1\\nclass B:\\n    def c(self):\\n        d = 2").body)]
    ['A', 'B', 'c']
    """
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name, body=members):
                yield name
                yield from defined(members)
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("page", ["where-is", "glossary", "architecture"])
def test_names_are_defined_in_their_files(page: str) -> None:
    pairs = re.findall(NAME_IN_FILE, (ROOT / "docs" / f"{page}.md").read_text())
    assert pairs
    for file, name in pairs:
        names = defined(ast.parse((ROOT / file).read_text()).body)
        assert name in names, f"{page}.md: {file} defines no {name}"


def promises(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables whose last column says what shows a promise.

    >>> [*promises("| a | shown by |\\n|---|---|\\n| x | `t` |\\n\\n| b |\\n|---|\\n| y |")]
    [['x', '`t`']]
    """
    for table in re.findall(r"(?m)(?:^\|.*\|(?:\n|\Z))+", text):
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        if rows[0][-1] == "shown by":
            yield from rows[2:]


def unshown(text: str) -> Iterator[str]:
    """Yield each promise without a test, and each test that a text names and that is not there."""
    for cells in promises(text):
        if not re.search(TEST, cells[-1]):
            yield cells[0]
    for path, name in re.findall(TEST, text):
        file = ROOT / path
        if not file.is_file():
            yield path
        elif name and name not in defined(ast.parse(file.read_text()).body):
            yield f"{path}::{name}"


def test_each_promise_of_the_threat_model_has_tests_that_exist() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    rows = [*promises(text)]
    assert len(rows) > 100
    assert [*unshown(text)] == []
    assert [row[0] for row in rows if len(row[0].split()) >= 30] == []
    parts = re.split(r"(?m)^(?=##+ )", text)[1:]
    assert [part for part in parts if "| shown by |" not in part] == []
    assert [part for part in parts if "\nNot covered:\n" not in part] == []


def test_a_promise_whose_test_is_gone_is_found() -> None:
    here = "tests/unit/test_docs.py"
    rows = {
        "shown": f"`{here}`, `{here}::unshown`, `{here}::ROOT`",
        "without any proof": "`docs/threat-model.md`",
        "a file that is gone": "`tests/security/test_gone.py`",
        "a test that is gone": f"`{here}`, `{here}::test_gone`",
        "a test of which only a part is named": f"`{here}::test_each`",
    }
    lines = [f"| {promise} | owners | {shown} |" for promise, shown in rows.items()]
    text = "\n".join(["| promise | to whom | shown by |", "|---|---|---|", *lines])
    assert [*unshown(text)] == [
        "without any proof",
        "tests/security/test_gone.py",
        f"{here}::test_gone",
        f"{here}::test_each",
    ]


def test_names_without_a_file_in_the_glossary_are_models() -> None:
    names = re.findall(r"\(`(\w+)`\)", (ROOT / "docs" / "glossary.md").read_text())
    assert names
    assert {*names} <= {model.__name__ for model in apps.get_models()}


def dotted_names(text: str) -> Iterator[str]:
    """Names such as module.function in backticks.

    >>> [*dotted_names("see `tasks.models.Task`, `dynabench.json`")]
    ['tasks.models.Task']
    """
    names = re.findall(rf"`((?:{'|'.join(APPS)})(?:\.\w+)+)`", text)
    yield from (name for name in names if name.rpartition(".")[2] not in ENDINGS)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_dotted_names_resolve(page: Path) -> None:
    labels = {model._meta.label for model in apps.get_models()}  # as docs/privacy.md names tables
    for name in {*dotted_names(page.read_text())} - labels:
        pkgutil.resolve_name(name)


def test_the_annotators_page_lists_exactly_the_badges() -> None:
    page = (ROOT / "docs" / "annotators.md").read_text()
    rows = page.partition("| badge | for |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert [row.split("|")[1].strip() for row in rows] == [name for name, _, _ in BADGES]


def test_where_is_answers_each_question_with_one_path() -> None:
    rows = re.findall(r"(?m)^- Where .*", (ROOT / "docs" / "where-is.md").read_text())
    answers = [re.fullmatch(rf"- (Where [^?]+\?) {NAME_IN_FILE}", row) for row in rows]
    assert len({answer[1] for answer in answers if answer}) == len(rows) >= 25


def test_each_folder_of_a_room_says_what_it_is_for() -> None:
    # docs/architecture.md says what these are.
    named = {*APPS[1:], "accounts", "lib", "me", "own", "webhooks"}
    usual = {"api", "management", "commands", "migrations", "templatetags"}
    inits = [file for app in APPS for file in (ROOT / app).rglob("__init__.py")]
    silent = [file.parent for file in inits if not ast.get_docstring(ast.parse(file.read_text()))]
    assert {folder.name for folder in silent} <= named | usual


@each_page
def test_commands_and_their_options_exist(page: Path) -> None:
    known = get_commands()
    text = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"manage\.py ([^\n`|]+)", text):
        name, *words = line.split("#")[0].split()
        assert name in known, f"{page.name}: manage.py has no command {name}"
        parser = load_command_class(known[name], name).create_parser("manage.py", name)
        options = {option for action in parser._actions for option in action.option_strings}
        used = {word.split("=")[0].rstrip(".,;:") for word in words if word.startswith("--")}
        assert used <= options, f"{page.name}: {name} has no {', '.join(sorted(used - options))}"


def shell_variables() -> set[str]:
    scripts = [ROOT / "run", ROOT / "test", ROOT / ".ci" / "run", *(ROOT / "scripts").glob("*.sh")]
    scripts += [
        file for file in (ROOT / "deploy").rglob("*") if file.suffix in ("", ".sh", ".yaml")
    ]
    scripts = [file for file in scripts if file.is_file()]
    return {
        name
        for script in scripts
        for name in re.findall(r"\$\{([A-Z][A-Z0-9_]+):-", script.read_text())
    }


def test_the_page_of_settings_has_exactly_the_variables_that_the_site_reads() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    listed = re.findall(r"(?m)^### ([A-Z0-9_]+)$", text)
    reading = text.partition("\n## How values are read\n")[2].partition("\n## ")[0]
    of_libraries = {"SSL_CERT_FILE"}
    listed += sorted({*re.findall(r"`([A-Z0-9_]+_FILE)`", reading)} - of_libraries)
    assert sorted(listed) == sorted(variables(*APPS) - variables("dynabench/client"))


def test_developers_page_names_the_variables_of_tests_and_scripts() -> None:
    pages = [
        (ROOT / "docs" / name).read_text()
        for name in ("configuration.md", "operators.md", "developers.md", "deploy.md")
    ]
    named = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", " ".join(pages)))
    assert shell_variables() | variables("tests") - FOREIGN <= named


@each_page
def test_variables_that_a_page_names_are_read(page: Path) -> None:
    text = page.read_text()
    assigned = re.findall(r"(?m)(?:^|[\s`])([A-Z][A-Z0-9_]+)=", text)
    # A name after a file is a constant in it.
    quoted = re.findall(r"(?<!\.py` )`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`", text)
    known = variables(*APPS, "tests", "scripts") | shell_variables() | FOREIGN
    for name in {*assigned, *quoted}:
        own = name.startswith("TARGET_")  # chosen by owners
        setting = f"{name} = " in (ROOT / "dynabench" / "settings.py").read_text()
        assert name in known or own or setting, f"{page.name}: nothing reads {name}"


def test_no_file_names_a_machine_or_leaves_work_open() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {word}"
        for file in project_files()
        if file.name != "test_house.py"  # it forbids the same words in code
        for text in [file.read_text(errors="ignore")]
        for word in FORBIDDEN
        if word in text
    ]
    assert found == []
