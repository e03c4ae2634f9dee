"""Whether adversaries can work in a task of conversations, and what it asks of them."""

from django.utils.translation import gettext as _

from core.errors import Refused
from dynabench.adversaries.kinds.base import AdversaryKind, TalkField, TalkTask
from tasks.config.components import Answers, Component
from tasks.config.field_types.chat import DEFAULT_MAX_CHARS, get_max_turns
from tasks.config.schema import TaskConfig

FIELD_TYPES = ("multiclass", "text", "long_text")
"""The types of fields that an adversary can fill in about a conversation."""
DEFAULT_QUESTION = "Is the model's last answer right?"
DEFAULT_ANSWERS = Answers(correct="right", incorrect="wrong")


def has_talks_to_attack(config: TaskConfig) -> bool:
    """Return whether a conversation counts by a rule or by what its author claims."""
    if config.kind != "examples" or config.talk is None:
        return False
    # Of criteria the author says more than one thing, and decisions are about people.
    is_judged = config.verdict.type in ("secret", "pattern", "ask_user")
    return is_judged and all(one.type in FIELD_TYPES for one in _list_asked_fields(config))


def check_talk_fits(config: TaskConfig, kind: AdversaryKind) -> None:
    """Check that a kind can have the task's conversations. Raises Refused."""
    if kind.no_talk_reason:
        raise Refused(_(kind.no_talk_reason), code="no_talks")
    if not has_talks_to_attack(config):
        raise Refused(
            _("Adversaries can’t fill in or judge everything that this task asks for."),
            code="unfit",
        )


def describe_talk(config: TaskConfig) -> TalkTask:
    """Return what a task of conversations asks of an adversary."""
    assert config.talk is not None
    fields = [
        TalkField(one.name, one.title, one.values, one.max_length or DEFAULT_MAX_CHARS)
        for one in _list_asked_fields(config)
        # The server draws that one.
        if one.name != config.goal.field
    ]
    policy, rule = config.validation, config.verdict
    question, answers = policy.question, policy.answers
    # The author's own question, if there is one, rather than the judges'.
    if rule.type == "ask_user":
        question, answers = rule.question or question, rule.answers or answers
    answers = answers or DEFAULT_ANSWERS
    return TalkTask(
        goal=config.goal.text or config.name,
        labels=config.goal_choices or ("",),
        max_turns=get_max_turns(config.talk),
        max_chars=config.talk.max_length or DEFAULT_MAX_CHARS,
        fields=tuple(fields),
        is_claimed=rule.type == "ask_user",
        question=question or DEFAULT_QUESTION,
        wrong=answers.incorrect,
        right=answers.correct,
    )


def _list_asked_fields(config: TaskConfig) -> list[Component]:
    """Return the fields besides the conversation that every author fills in."""
    return [one for one in config.input if one != config.talk and one.required and one.when is None]
