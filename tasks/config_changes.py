"""Check which configuration a task may have now, and what differs from the current one."""

import difflib
from hashlib import sha256

from django.utils.translation import gettext, gettext_noop

from core.errors import Refused
from core.text.words import compose
from tasks.config.changes import find_context_changes, find_forbidden_changes
from tasks.config.dynabench1 import convert_config, find_unsupported_parts
from tasks.config.dynabench2 import is_dynabench2_config
from tasks.config.loading import check_config
from tasks.config.parsing import ConfigError, Finding, Problem, read_yaml, suggest_nearest
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task, parse_config
from tasks.targets.sample_judges import select_configured_judges

ROUND_OPENED = gettext_noop("A round has been opened, so you can't change this.")
HAS_CONTEXTS = gettext_noop(
    "The task already has texts, so you can't change this. Undo the imports of its texts first."
)
STALE_MESSAGE = gettext_noop(
    "Someone saved another configuration after you opened this one. Compare both, then save again."
)
MAX_DIFF_CHARS = 20_000
NATIVE_KEYS = {"version", "verdict", "metrics"}  # no configuration of Dynabench has one of them
DYNABENCH_KEYS = {"context", "input", "output", "user_input"}  # each of its has one of these


class StaleConfig(Refused):
    """Raised if somebody else has saved the configuration since it was opened."""

    code = "stale"
    field = "version"


def parse_or_convert(text: str, *, name: str = "") -> tuple[TaskConfig, str, list[str]]:
    """Return the parsed configuration, its text, and notes about it.

    A configuration of Dynabench 1.0 or 2.0 is converted. name: the task's name, which such a
    configuration lacks. Raises ConfigError.
    """
    notes: list[str] = []
    text = compose(text)
    document = read_yaml(text)
    # A text is one of Dynabench if it has a key of theirs and none of ours: both have `context`.
    keys = document.data.keys()
    if DYNABENCH_KEYS & keys and not NATIVE_KEYS & keys:
        if problems := [
            document.build_problem(finding) for finding in find_unsupported_parts(document.data)
        ]:
            raise ConfigError(problems)
        conversion = convert_config(text, name=name or "Imported task")
        text = conversion.config_yaml_text
        version = "1.0"
        if is_dynabench2_config(document.data):
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


def build_diff(old_text: str, new_text: str) -> str:
    """Return a unified diff of two texts with one line of context."""
    # Lines without line breaks, so the header lines must have none, either.
    lines = difflib.unified_diff(old_text.splitlines(), new_text.splitlines(), lineterm="", n=1)
    return "\n".join(lines)


def find_fixed_reason(task: Task) -> str:
    """Return the reason why parts may not change: ROUND_OPENED, HAS_CONTEXTS, or "" for none."""
    rounds = Round.objects.filter(task=task.pk)
    # Asked in this order, since an opened round fixes more than contexts do.
    if rounds.filter(opened_at__isnull=False).exists():
        return ROUND_OPENED
    if rounds.filter(contexts__isnull=False).exists():
        return HAS_CONTEXTS
    return ""


def _parse_stored(text: str) -> TaskConfig | None:
    """Return a stored configuration parsed without today's checks; None if it is unreadable."""
    try:
        return parse_config(text)
    except ConfigError:
        return None


def find_fixed_parts(task: Task) -> tuple[str, list[str]]:
    """Return the reason why parts may not change, and the names of these parts.

    Both are empty if everything may change, or if the stored configuration is unreadable.
    """
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
    """Return why parts may not change, and the changes that would reinterpret stored rows.

    Both are empty if every change is allowed.
    """
    reason, old_config = find_fixed_reason(task), _parse_stored(old_text)
    if not reason or old_config is None:
        return "", []
    find_changes = find_forbidden_changes
    if reason == HAS_CONTEXTS:
        find_changes = find_context_changes
    return reason, find_changes(old_config, new_config)


def check_change(task: Task, text: str) -> tuple[TaskConfig | None, list[Problem]]:
    """Return the configuration, or None if it is refused, and all problems."""
    config, problems = check_config(text)
    if config is None:
        return None, problems
    old_config = _parse_stored(task.config_text)
    if old_config is not None and old_config.kind != config.kind:
        kind_change = Finding(
            ("kind",), "a task keeps its kind", f"write `kind: {old_config.kind}`"
        )
        problems.insert(0, read_yaml(text).build_problem(kind_change))
        return None, problems
    reason, findings = find_refused_changes(task, task.config_text, config)
    if config.validation.sample is not None:
        live_round = task.rounds.filter(state__in=[Round.State.OPEN, Round.State.PAUSED]).first()
        judge_finding = _find_missing_judge(task, config, live_round)
        # Whoever changes another line of the file broke nothing here.
        is_same = (
            old_config is not None and old_config.validation.sample == config.validation.sample
        )
        # A round that is planned may get its judge model later, because opening it asks again.
        if judge_finding and (is_same or live_round is None):
            problems.append(read_yaml(text).build_problem(judge_finding, "warning"))
        elif judge_finding:
            return None, [read_yaml(text).build_problem(judge_finding), *problems]
    if not findings:
        return config, problems
    document = read_yaml(text)
    refusals = []
    for finding in findings:
        message = f"{finding.message} ({reason[:-1]})"  # without the full stop of the reason
        refusals.append(document.build_problem(Finding(finding.loc, message, finding.fix)))
    return None, refusals + problems


def _find_missing_judge(task: Task, config: TaskConfig, live_round: Round | None) -> Finding | None:
    """Return a finding if the task lacks the judge model of the sample; None otherwise.

    live_round: the round in which people write now; authors may not try to fool the judge in it.
    """
    sample = config.validation.sample
    if sample is None:
        return None
    models = select_configured_judges(task, config, live_round)
    names = list(models.order_by("name").values_list("name", flat=True))
    if sample.judge in names:
        return None
    kind = "chat model" if sample.by_instruction else "model"
    message = f'the task has no {kind} "{sample.judge}" that authors don’t try to fool'
    fix = suggest_nearest(sample.judge, names) if names else "add it to the task’s models first"
    return Finding(("validation", "sample", "judge"), message, fix)


def check_new_config(task: Task, text: str, *, base: str) -> tuple[TaskConfig, list[Problem]]:
    """Return a configuration that may be stored now, and its warnings.

    base: the hash of the text that was edited. Raises StaleConfig, ConfigError.
    """
    # The text itself is compared, and no number of a version: whoever saves the same text again
    # overwrites nothing.
    if hash_text(task.config_text) != base:
        raise StaleConfig(gettext(STALE_MESSAGE))
    config, problems = check_change(task, text)
    if config is None:
        raise ConfigError(problems)
    return config, problems
