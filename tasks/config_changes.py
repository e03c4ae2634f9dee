"""Which configuration a task may have now: what may change, and what differs."""

import difflib
from hashlib import sha256

from django.utils.translation import gettext, gettext_noop

from core.errors import Refused
from core.text.words import composed
from tasks.config.changes import context_changes, forbidden_changes
from tasks.config.dynabench1 import convert, unfinished
from tasks.config.dynabench2 import is_of_dynabench2
from tasks.config.loading import check_config
from tasks.config.parsing import ConfigError, Finding, Problem, read_yaml
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task, parsed_config

OPENED = gettext_noop("A round has been opened, so this is fixed.")
HAS_CONTEXTS = gettext_noop("The task has contexts. Undo their imports to change this.")
STALE = gettext_noop(
    "Somebody saved another configuration since you opened this one. Compare, then save again."
)
LONGEST_DIFF = 20_000
OWN_KEYS = {"version", "verdict", "metrics"}  # no configuration of Dynabench has one of them
OLD_KEYS = {"context", "input", "output", "user_input"}  # each of its has one of these


class ConfigStale(Refused):
    """Somebody else saved the configuration meanwhile."""

    code = "stale"
    field = "version"


def usable(text: str, *, name: str = "") -> tuple[TaskConfig, str, list[str]]:
    """The configuration, its text, and what to know of it.

    A text of Dynabench 1.0 or 2.0 is converted; it holds no name, so the task gets this one.
    Raises ConfigError.
    """
    notes, text = [], composed(text)
    document = read_yaml(text)
    keys = document.data.keys()
    if OLD_KEYS & keys and not OWN_KEYS & keys:
        if problems := [document.problem(found) for found in unfinished(document.data)]:
            raise ConfigError(problems)
        converted = convert(text, name=name or "Imported task")
        text = converted.config_yaml_text
        version = "2.0" if is_of_dynabench2(document.data) else "1.0"
        notes = [f"Converted from Dynabench {version}.", *converted.notes]
    config, problems = check_config(text)
    if config is None:
        raise ConfigError(problems)
    return config, text, [*notes, *map(str, problems)]


def digest(text: str) -> str:
    """Tells one text from another."""
    return sha256(text.encode()).hexdigest()[:32]


def diff(before: str, after: str) -> str:
    """The lines that differ, with one line around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "\n".join(lines)


def fixed_because(task: Task) -> str:
    """Why parts of the configuration may not change: OPENED, HAS_CONTEXTS or empty."""
    rounds = Round.objects.filter(task=task.pk)
    if rounds.filter(opened_at__isnull=False).exists():
        return OPENED
    return HAS_CONTEXTS if rounds.filter(contexts__isnull=False).exists() else ""


def _stored(text: str) -> TaskConfig | None:
    """A configuration that was stored once, though it might be refused now; None: it is none."""
    try:
        return parsed_config(text)
    except ConfigError:
        return None


def fixed_parts(task: Task) -> tuple[str, list[str]]:
    """Why parts may not change, and which those are, by their paths."""
    why, config = fixed_because(task), _stored(task.config_text)
    if not why or config is None:
        return "", []
    sections = ("context",) if why == HAS_CONTEXTS else ("context", "input", "output")
    names = [f"{s}: {part.name}" for s in sections for part in getattr(config, s)]
    return gettext(why), names if why == HAS_CONTEXTS else [*names, "verdict"]


def refused_changes(task: Task, old_text: str, new: TaskConfig) -> tuple[str, list[Finding]]:
    """What would give stored rows another meaning, and why it may not; empty when all is well."""
    why, old = fixed_because(task), _stored(old_text)
    if not why or old is None:
        return "", []
    find = context_changes if why == HAS_CONTEXTS else forbidden_changes
    return why, find(old, new)


def check_change(task: Task, text: str) -> tuple[TaskConfig | None, list[Problem]]:
    """The configuration, if the task may have it now, and everything to mend or consider."""
    config, problems = check_config(text)
    if config is None:
        return None, problems
    old = _stored(task.config_text)
    if old is not None and old.kind != config.kind:
        kept = Finding(("kind",), "a task keeps its kind", f"write `kind: {old.kind}`")
        return None, [read_yaml(text).problem(kept), *problems]
    why, found = refused_changes(task, task.config_text, config)
    if not found:
        return config, problems
    document = read_yaml(text)
    refused = [
        document.problem(Finding(one.loc, f"{one.message} ({why[:-1]})", one.fix)) for one in found
    ]
    return None, [*refused, *problems]


def checked(task: Task, text: str, *, base: str) -> tuple[TaskConfig, list[Problem]]:
    """The configuration, if it may be stored now, and what to consider.

    base: digest of the text that was edited. Raises ConfigStale, ConfigError.
    """
    if digest(task.config_text) != base:
        raise ConfigStale(gettext(STALE))
    config, problems = check_change(task, text)
    if config is None:
        raise ConfigError(problems)
    return config, problems
