"""Read the files of a benchmark's folder. Every problem names its file, line and column."""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

from dynabench.client import types
from dynabench.client.benchmarks.problems import FileProblem, FolderError
from dynabench.client.benchmarks.settings_text import Settings, SettingsError, read_settings
from dynabench.client.owning import FORMATS

BENCHMARK_FILE, CONFIG_FILE, TARGET_FILE = "benchmark.yaml", "task.yaml", "target.yaml"
ROUND_FILE, MEMBERS_FILE, LOCK_FILE = "round.yaml", "members.csv", "dynabench.lock"
MAX_TEXT_BYTES = 20 * 10**6
"""The maximum size of the file of texts; the site refuses larger ones."""
MAX_LISTED_PROBLEMS = 20
"""The maximum number of problems that are listed for one file."""
CODE_PATTERN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
SECRET_NAME = re.compile(r"TARGET_[A-Z0-9_]+")
"""A prefix of its own, so that a folder of somebody else cannot ask for other secrets of yours."""
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
ROLES: tuple[str, ...] = get_args(get_type_hints(types.NewMember)["role"])
RULES = ("majority", "all", "any")
Check = Callable[[Any], str]
"""Returns what is wrong with a value and how to correct it; an empty string if nothing is."""


def _check_text(value: Any) -> str:
    return "" if isinstance(value, str) else "Write a text, in quotes if it looks like a number."


def _check_flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "Write true or false."


def _check_mapping(value: Any) -> str:
    return "" if isinstance(value, dict) else 'Write names and values, such as {"model": "small"}.'


def _check_number(value: Any) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if is_number else "Write a whole number."


def _check_limit(value: Any) -> str:
    return "" if value is None else _check_number(value)


def _check_round_number(value: Any) -> str:
    return _check_number(value) or ("" if value else "Rounds are counted from 1.")


def _check_rule(value: Any) -> str:
    return "" if value in RULES else f"Choose one of: {', '.join(RULES)}."


def _check_code(value: Any) -> str:
    if isinstance(value, str) and CODE_PATTERN.fullmatch(value):
        return ""
    return "Use lowercase letters, numbers and hyphens, such as my-benchmark."


def _check_target_name(value: Any) -> str:
    if isinstance(value, str) and TARGET_NAME.fullmatch(value):
        return ""
    return "Use letters, numbers and hyphens, such as my-model."


def _check_url(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        return "Begin the URL with https://."
    if "@" in value.split("/")[2]:
        return "Leave out the user name and password. Put an API key in secret_from."
    return ""


def _check_secret_name(value: Any) -> str:
    if isinstance(value, str) and SECRET_NAME.fullmatch(value):
        return ""
    return (
        "Name the environment variable that holds the API key, such as TARGET_MY_MODEL, and never "
        "the key itself."
    )


def _check_time(value: Any) -> str:
    if value is None or (isinstance(value, str) and parse_time(value)):
        return ""
    return "Write a time such as 2027-03-01T18:00Z."


def parse_time(text: str) -> datetime | None:
    """Return a time as written in a file, by default in UTC; None if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


BENCHMARK_CHECKS: Mapping[str, Check] = {
    "task": _check_code,
    "visible": _check_flag,
    "try_out": _check_flag,
}
TARGET_CHECKS: Mapping[str, Check] = {
    "name": _check_target_name,
    "model": _check_text,
    "url": _check_url,
    "source": _check_text,
    "adapter": _check_text,
    "revision": _check_text,
    "options": _check_mapping,
    "serving": _check_mapping,
    "secret_from": _check_secret_name,
}
ORIGINS = ("model", "url", "source")
"""Where the model is: one that the site serves, at a URL, or loaded by the site's model server."""
ROUND_CHECKS: Mapping[str, Check] = {
    "number": _check_round_number,
    "open": _check_flag,
    "description": _check_text,
    "rule": _check_rule,
    "show_target_name": _check_flag,
    "ends_at": _check_time,
    "max_collected": _check_limit,
    "max_fooling": _check_limit,
    "max_spent": _check_limit,
    "pay_example": _check_number,
    "pay_validation": _check_number,
    "pay_bonus": _check_number,
}


@dataclass(frozen=True)
class TargetFile:
    """A model to fool. model: one that the site serves; otherwise `settings` describes it."""

    name: str
    model: str
    settings: Mapping[str, Any]
    secret_from: str
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class RoundFile:
    """The plan of one round. is_open: whether to open it once it has all that it needs."""

    number: int
    is_open: bool
    plan: Mapping[str, Any]
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class MemberLine:
    """A person's address and role. line: the line of the file."""

    email: str
    role: str
    line: int


@dataclass(frozen=True)
class TextLine:
    """A text of the file as an object, with its line."""

    line: int
    values: Mapping[str, Any]


@dataclass
class Folder:
    """What the files of a folder say. A part is None if its file does not exist."""

    path: Path
    task: str = ""
    visibility: dict[str, bool] = field(default_factory=dict)
    config_text: str = ""
    target: TargetFile | None = None
    round: RoundFile | None = None
    members: list[MemberLine] | None = None
    texts_path: Path | None = None
    text_lines: list[TextLine] | None = None
    """The texts of a .jsonl file; None for other formats, which only the site reads."""


def read_folder(path: Path) -> Folder:
    """Return what the files of a folder say. Raises FolderError with the problems of all files."""
    reader = _FolderReader(path)
    reader.read_all()
    if reader.problems:
        raise FolderError(reader.problems)
    return reader.folder


def read_task_code(path: Path) -> str:
    """Return the code of the folder's task, and ignore all other files. Raises FolderError."""
    reader = _FolderReader(path)
    reader.read_benchmark()
    if reader.problems:
        raise FolderError(reader.problems)
    return reader.folder.task


class _FolderReader:
    """A reader of a folder that collects the problems of all files."""

    def __init__(self, path: Path) -> None:
        self.folder, self.problems = Folder(path), list[FileProblem]()

    def read_all(self) -> None:
        """Read each file that exists."""
        self.read_benchmark()
        self.folder.config_text = self._read_text(CONFIG_FILE) or ""
        if not self.folder.config_text and not self.problems:
            message = "This file is missing or empty. It describes the task."
            self.problems.append(FileProblem(CONFIG_FILE, message))
        self._read_target()
        self._read_round()
        self._read_members()
        self._find_texts()

    def _read_text(self, name: str) -> str | None:
        """Return a file's text, in NFC and with LF line ends; None if there is no such file."""
        data = self._read_bytes(name)
        if data is None:
            return None
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            # Counted in bytes, since what follows is no text.
            line = data[: error.start].count(b"\n") + 1
            column = error.start - data.rfind(b"\n", 0, error.start)
            self.problems.append(FileProblem(name, "Save the file as UTF-8.", line, column))
            return None
        # As the site stores it, so that a second `apply` finds nothing to change.
        return unicodedata.normalize("NFC", re.sub(r"\r\n?", "\n", text))

    def _read_bytes(self, name: str) -> bytes | None:
        """Return a file's bytes; None if there is no such file, or if it lies elsewhere."""
        path = self.folder.path / name
        if not path.exists():
            return None
        # A folder of somebody else must not send files from outside it.
        if not path.resolve().is_relative_to(self.folder.path.resolve()):
            message = "This is a link to a file outside the folder. Copy the file here."
            self.problems.append(FileProblem(name, message))
            return None
        try:
            return path.read_bytes()
        except OSError as error:
            message = f"This file can't be read ({error.strerror})."
            self.problems.append(FileProblem(name, message))
            return None

    def _read_settings(
        self, name: str, checks: Mapping[str, Check], required: tuple[str, ...] = ()
    ) -> Settings | None:
        """Return the settings of a file, each checked; None without the file or with problems."""
        text = self._read_text(name)
        if text is None:
            return None
        try:
            settings = read_settings(text)
        except SettingsError as error:
            self.problems.append(FileProblem(name, str(error), error.line, error.column))
            return None
        problem_count = len(self.problems)
        # All of them, so that nobody corrects one by one.
        for setting, value in settings.values.items():
            if setting not in checks:
                message = f"Unknown setting {setting!r}. Use: {', '.join(checks)}."
            else:
                message = checks[setting](value)
                message = message and f"{setting}: {message}"
            if message:
                self.problems.append(FileProblem(name, message, *settings.places[setting]))
        for setting in required:
            if setting not in settings.values:
                self.problems.append(FileProblem(name, f"Add `{setting}: …`."))
        return settings if len(self.problems) == problem_count else None

    def read_benchmark(self) -> None:
        """Read which task the folder describes. Raises FolderError without the file."""
        # Said alone: in another folder every file would be missing.
        if not (self.folder.path / BENCHMARK_FILE).is_file():
            message = "This file is missing. Start a folder with: dynabench init my-benchmark"
            raise FolderError([FileProblem(str(self.folder.path / BENCHMARK_FILE), message)])
        settings = self._read_settings(BENCHMARK_FILE, BENCHMARK_CHECKS, ("task",))
        if settings is None:
            return
        self.folder.task = settings.values["task"]
        for name, api_name in (("visible", "is_visible"), ("try_out", "allow_try_out")):
            if name in settings.values:
                self.folder.visibility[api_name] = settings.values[name]

    def _read_target(self) -> None:
        settings = self._read_settings(TARGET_FILE, TARGET_CHECKS, ("name",))
        if settings is None:
            return
        values = dict(settings.values)
        origins = [name for name in ORIGINS if name in values]
        # Two of them would leave open which model people fool.
        if len(origins) != 1:
            message = "Say where the model is with exactly one of: model, url, source."
            place = max((settings.places[name] for name in origins), default=(0, 0))
            self.problems.append(FileProblem(TARGET_FILE, message, *place))
            return
        self._refuse_unused_settings(origins[0], settings)
        name, secret_from = values.pop("name"), values.pop("secret_from", "")
        model = values.pop("model", "")
        self.folder.target = TargetFile(name, model, values, secret_from, settings.places)

    def _refuse_unused_settings(self, origin: str, settings: Settings) -> None:
        """Note a problem for each setting that has no effect for a model from this origin."""
        allowed_names = {
            "model": {"name", "model"},
            "url": TARGET_CHECKS.keys() - {"model", "source", "revision", "serving"},
            "source": TARGET_CHECKS.keys() - {"model", "url", "secret_from"},
        }[origin]
        for name in settings.values:
            if name not in allowed_names:
                message = f"{name} has no effect together with {origin}. Delete one of them."
                self.problems.append(FileProblem(TARGET_FILE, message, *settings.places[name]))

    def _read_round(self) -> None:
        settings = self._read_settings(ROUND_FILE, ROUND_CHECKS)
        if settings is None:
            return
        plan = dict(settings.values)
        number, is_open = plan.pop("number", 1), plan.pop("open", False)
        # With its time zone, which the file can leave out.
        if plan.get("ends_at"):
            time = parse_time(plan["ends_at"])
            plan["ends_at"] = time and time.isoformat()
        self.folder.round = RoundFile(number, is_open, plan, settings.places)

    def _read_members(self) -> None:
        text = self._read_text(MEMBERS_FILE)
        if text is None:
            return
        problem_count = len(self.problems)
        members: list[MemberLine] = []
        lines_by_email: dict[str, int] = {}
        for line, email, role in self._read_member_rows(text):
            if earlier_line := lines_by_email.get(email.casefold()):
                message = f"{email} is already in line {earlier_line}. Give each person one role."
                self.problems.append(FileProblem(MEMBERS_FILE, message, line, 1))
            lines_by_email[email.casefold()] = line
            members.append(MemberLine(email, role, line))
        if len(self.problems) == problem_count:
            self.folder.members = members

    def _read_member_rows(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Yield (line, address, role) of each valid row; note a problem for each other one."""
        # Strict, so that an open quotation mark does not swallow the lines below it.
        rows = csv.reader(text.splitlines(keepends=True), strict=True)
        try:
            header = [cell.strip().lower() for cell in next(rows, [])]
            if header != ["email", "role"]:
                message = "Begin with the line: email,role"
                self.problems.append(FileProblem(MEMBERS_FILE, message, 1, 1))
                return
            for cells in rows:
                line = rows.line_num
                # Blank lines, and lines that are commented out.
                if not "".join(cells).strip() or cells[0].startswith("#"):
                    continue
                if len(cells) != 2:
                    message = "Write an address, a comma and a role."
                    self.problems.append(FileProblem(MEMBERS_FILE, message, line, 1))
                    continue
                email, role = cells[0].strip(), cells[1].strip().lower()
                problem = _find_member_problem(email, role)
                if problem:
                    column, message = (1, problem[1])
                    # After the address and its comma.
                    if problem[0] == "role":
                        column = len(cells[0]) + 2
                    self.problems.append(FileProblem(MEMBERS_FILE, message, line, column))
                    continue
                yield line, email, role
        except csv.Error as error:
            message = f"This isn't CSV ({error})."
            self.problems.append(FileProblem(MEMBERS_FILE, message, rows.line_num, 1))

    def _find_texts(self) -> None:
        """Find the file of texts, and read it if it is JSON lines."""
        paths = []
        for path in sorted(self.folder.path.glob("texts.*")):
            if path.name.lower().removesuffix(".gz").rpartition(".")[2] in FORMATS:
                paths.append(path)
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            message = f"The folder has more than one file of texts ({names}). Keep one."
            self.problems.append(FileProblem(paths[1].name, message))
            return
        if not paths:
            return
        (path,) = paths
        # Before it is read: it may be anything.
        if path.stat().st_size > MAX_TEXT_BYTES:
            message = "The file is larger than 20 MB. Shorten it."
            self.problems.append(FileProblem(path.name, message))
            return
        if path.suffix.lower() == ".jsonl":
            text = self._read_text(path.name)
            if text is None:
                return
            problems = list[FileProblem]()
            self.folder.text_lines = _read_text_lines(path.name, text, problems)
            self.problems += problems[:MAX_LISTED_PROBLEMS]
            if not self.folder.text_lines and not problems:
                return
        elif self._read_bytes(path.name) is None:
            return
        self.folder.texts_path = path


def _find_member_problem(email: str, role: str) -> tuple[str, str] | None:
    """Return (the wrong cell, message), or None if both cells are fine."""
    if not ADDRESS.fullmatch(email):
        return "email", f"{email!r} isn't an email address."
    if role not in ROLES:
        return "role", f"Unknown role {role!r}. Use one of: {', '.join(ROLES)}."
    return None


def _read_text_lines(name: str, text: str, problems: list[FileProblem]) -> list[TextLine]:
    """Return the objects in JSON lines, and add a problem for each line that is none."""
    text_lines = []
    for line, line_text in enumerate(text.split("\n"), 1):
        if not line_text.strip():
            continue
        try:
            values = json.loads(line_text)
        except json.JSONDecodeError as error:
            message = f"This isn't JSON: {error.msg}."
            problems.append(FileProblem(name, message, line, error.colno))
            continue
        except RecursionError:
            problems.append(FileProblem(name, "This is nested too deeply.", line, 1))
            continue
        if isinstance(values, dict):
            text_lines.append(TextLine(line, values))
        else:
            message = 'Write an object, such as {"text": "…"}.'
            problems.append(FileProblem(name, message, line, 1))
    return text_lines
