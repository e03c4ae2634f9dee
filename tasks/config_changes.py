"""Which configuration a task may have now: what may change, and what differs."""

import difflib
from hashlib import sha256

from django.utils.translation import gettext, gettext_noop

from core.errors import Refused
from core.text.words import composed
from tasks.config.changes import find_context_changes, find_forbidden_changes
from tasks.config.dynabench1 import convert, find_unsupported_parts
from tasks.config.dynabench2 import is_of_dynabench2
from tasks.config.loading import check_config
from tasks.config.parsing import ConfigError, Finding, Problem, read_yaml
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task, parsed_config

ROUND_OPENED = gettext_noop("A round has been opened, so this is fixed.")
HAS_CONTEXTS = gettext_noop("The task has contexts. Undo their imports to change this.")
STALE_MESSAGE = gettext_noop(
    "Somebody saved another configuration since you opened this one. Compare, then save again."
)
MAX_DIFF_CHARS = 20_000
OWN_KEYS = {"version", "verdict", "metrics"}  # no configuration of Dynabench has one of them
DYNABENCH_KEYS = {"context", "input", "output", "user_input"}  # each of its has one of these


class ConfigStale(Refused):
    """Raised if somebody else has saved the configuration since it was opened."""

    code = "stale"
    field = "version"


def parse_or_convert(text: str, *, name: str = "") -> tuple[TaskConfig, str, list[str]]:
    """Return the parsed configuration, its text, and notes about it.

    A text of Dynabench 1.0 or 2.0 is converted. name: the task's name, which such a text lacks.
    Raises ConfigError.
    """
    notes: list[str] = []
    text = composed(text)
    document = read_yaml(text)
    # A text is one of Dynabench if it has a key of theirs and none of ours: both have `context`.
    keys = document.data.keys()
    if DYNABENCH_KEYS & keys and not OWN_KEYS & keys:
        if problems := [
            document.problem(finding) for finding in find_unsupported_parts(document.data)
        ]:
            raise ConfigError(problems)
        conversion = convert(text, name=name or "Imported task")
        text = conversion.config_yaml_text
        version = "1.0"
        if is_of_dynabench2(document.data):
            version = "2.0"
        notes.append(f"Converted from Dynabench {version}.")
        notes += conversion.notes
    config, problems = check_config(text)
    if config is None:
        raise ConfigError(problems)
    notes += map(str, problems)
    return config, text, notes


def hash_text(text: str) -> str:
    """Return a hash that identifies a text."""
    return sha256(text.encode()).hexdigest()[:32]


def build_diff(before: str, after: str) -> str:
    """Return a unified diff with one line of context."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "\n".join(lines)


def find_fixed_reason(task: Task) -> str:
    """Return the reason why parts are fixed: ROUND_OPENED, HAS_CONTEXTS or ""."""
    rounds = Round.objects.filter(task=task.pk)
    # Asked in this order, since an opened round fixes more than contexts do.
    if rounds.filter(opened_at__isnull=False).exists():
        return ROUND_OPENED
    if rounds.filter(contexts__isnull=False).exists():
        return HAS_CONTEXTS
    return ""


def _parse_stored(text: str) -> TaskConfig | None:
    """Parse a stored configuration without today's checks; return None if it is unreadable."""
    try:
        return parsed_config(text)
    except ConfigError:
        return None


def find_fixed_parts(task: Task) -> tuple[str, list[str]]:
    """Return the reason why parts are fixed, and the paths of these parts."""
    reason, config = find_fixed_reason(task), _parse_stored(task.config_text)
    if not reason or config is None:
        return "", []
    sections: tuple[str, ...] = ("context", "input", "output")
    if reason == HAS_CONTEXTS:
        sections = ("context",)
    names = []
    for section in sections:
        for component in getattr(config, section):
            names.append(f"{section}: {component.name}")
    if reason == ROUND_OPENED:
        names.append("verdict")
    return gettext(reason), names


def find_refused_changes(
    task: Task, old_text: str, new_config: TaskConfig
) -> tuple[str, list[Finding]]:
    """Return the reason why parts are fixed, and the changes that would reinterpret stored rows.

    Both are empty if every change is allowed.
    """
    reason, old_config = find_fixed_reason(task), _parse_stored(old_text)
    if not reason or old_config is None:
        return "", []
    find = find_forbidden_changes
    if reason == HAS_CONTEXTS:
        find = find_context_changes
    return reason, find(old_config, new_config)


def check_change(task: Task, text: str) -> tuple[TaskConfig | None, list[Problem]]:
    """Return the configuration and all problems; the configuration is None if it is refused."""
    config, problems = check_config(text)
    if config is None:
        return None, problems
    old = _parse_stored(task.config_text)
    if old is not None and old.kind != config.kind:
        kind_change = Finding(("kind",), "a task keeps its kind", f"write `kind: {old.kind}`")
        problems.insert(0, read_yaml(text).problem(kind_change))
        return None, problems
    reason, findings = find_refused_changes(task, task.config_text, config)
    if not findings:
        return config, problems
    document = read_yaml(text)
    refusals = []
    for finding in findings:
        message = f"{finding.message} ({reason[:-1]})"  # without the full stop of the reason
        refusals.append(document.problem(Finding(finding.loc, message, finding.fix)))
    return None, refusals + problems


def check_new_config(task: Task, text: str, *, base: str) -> tuple[TaskConfig, list[Problem]]:
    """Return a configuration that may be stored now, and its warnings.

    base: the digest of the text that was edited. Raises ConfigStale, ConfigError.
    """
    # The text itself is compared, and no number of a version: whoever saves the same text again
    # overwrites nothing.
    if hash_text(task.config_text) != base:
        raise ConfigStale(gettext(STALE_MESSAGE))
    config, problems = check_change(task, text)
    if config is None:
        raise ConfigError(problems)
    return config, problems
