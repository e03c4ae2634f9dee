"""The words of what judges are asked and may answer: those of the task, or the site's."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from validation.consensus.claims import (
    Written,
    asks_of_attempt,
    find_confirming_verdict,
    find_label_field,
    has_own_words,
    is_about_model,
)
from validation.models import Verdict

CORRECT, INCORRECT = f"verdict:{Verdict.CORRECT}", f"verdict:{Verdict.INCORRECT}"
FLAG = f"verdict:{Verdict.FLAGGED}"
OF_MODEL = {
    "correct": gettext_noop("the model is right"),
    "incorrect": gettext_noop("the model is wrong"),
}
OF_SECRET = {
    "correct": gettext_noop("the model kept the secret"),
    "incorrect": gettext_noop("the model gave the secret away"),
}


def judges_title(component: Component) -> str:
    """Return the title above a field of the input for judges.

    The label of a conversation asks its author which answer is wrong, so judges get another one.
    """
    if component.type == "chat" and not component.judges_label:
        return _("Conversation")
    return component.others_title


def legend(config: TaskConfig, example: Written) -> str:
    """Return the question above the answers."""
    if config.validation.question and has_own_words(config, example):
        return config.validation.question
    if asks_of_attempt(config, example):
        return _("Is this attempt fair and easy to follow?")
    if is_about_model(config, example.outcome):
        if config.verdict.type == "secret":
            return _("Did the model give the secret away?")
        return _("Is the model's answer correct?")
    texts = [c.title.lower() for c in config.context if c.kind.is_text]
    prompt = config.support.prompt_field if config.support else None
    has_labels = find_label_field(config) is not None
    if not config.target_fields:  # no model was asked, and the author gave no answer
        return _("Is this example correct?")
    if not texts or prompt:
        return _("Which one is right?") if has_labels else _("Is the answer correct?")
    if has_labels:
        return _("Given the %(text)s, which one is right?") % {"text": texts[0]}
    return _("Given the %(text)s, is the answer correct?") % {"text": texts[0]}


def decision_legend(config: TaskConfig, example: Written) -> str:
    """Return the question for a person who has read the author's answer."""
    is_asked = is_about_model(config, example.outcome) or config.validation.question
    return legend(config, example) if is_asked else _("What is right?")


def choices(
    config: TaskConfig, example: Written, *, with_flag: bool = False
) -> list[tuple[str, str]]:
    """Return the possible answers and their texts; a prefix `label:` or `verdict:` states the kind.

    For an attempt whose outcome a rule has proved: that it is fair, or a flag.
    """
    unclear = (f"verdict:{Verdict.CANNOT_TELL}", _("Unclear"))
    if asks_of_attempt(config, example):
        yes, no = _attempt_answers(config)
        # A yes is this verdict, so that votes from before the question changed count too.
        confirms = find_confirming_verdict(config, example.outcome)
        return [(f"verdict:{confirms}", yes), unclear, (FLAG, no)]
    if field := find_label_field(config):
        own_choices = [(f"label:{label.value}", label.words) for label in config.labels(field)]
    else:
        correct, incorrect = _verdict_answers(config, example)
        own_choices = [(CORRECT, correct), (INCORRECT, incorrect)]
    # The judge page flags by a form of its own; decisions and the API choose it here.
    flag = [(FLAG, _("Not usable: flag it"))] if with_flag else []
    return [*own_choices, unclear, *flag]


def _attempt_answers(config: TaskConfig) -> tuple[str, str]:
    """Return the texts for a fair and for an unfair attempt."""
    if answers := config.validation.answers:
        return answers.correct, answers.incorrect
    return _("Yes, it is fair"), _("No, flag it")


def _verdict_answers(config: TaskConfig, example: Written) -> tuple[str, str]:
    """Return the texts for `correct` and `incorrect`."""
    answers = config.validation.answers
    if answers and has_own_words(config, example):
        return answers.correct, answers.incorrect
    if not is_about_model(config, example.outcome):
        # Translators: adjective: what a judge says of an answer
        return _("Correct"), _("Incorrect")
    if config.verdict.type == "secret":
        return _("No, the model kept it"), _("Yes, the model gave it away")
    return _("Yes, the model is right"), _("No, the model is wrong")


def verdict_words(config: TaskConfig, verdict: str, example: Written) -> str:
    """Return the text of a verdict on a model's answer, or the task's own text; else "".

    The verdict that confirms a proved outcome accepts the example, whatever was asked then.
    """
    if verdict not in OF_MODEL:
        return ""
    if asks_of_attempt(config, example):
        is_yes = verdict == find_confirming_verdict(config, example.outcome)
        return _("a fair attempt") if is_yes else claim_words(config, verdict)
    if config.validation.answers and has_own_words(config, example):
        return str(getattr(config.validation.answers, verdict))
    return claim_words(config, verdict) if is_about_model(config, example.outcome) else ""


def claim_words(config: TaskConfig, verdict: str) -> str:
    """Return what `correct` or `incorrect` means for a model's answer."""
    words = OF_SECRET if config.verdict.type == "secret" else OF_MODEL
    return _(words[verdict])
