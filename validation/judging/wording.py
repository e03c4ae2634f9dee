"""The wording of questions to judges and of their answers: the task's own, or the default."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from validation.consensus.claims import (
    JudgeableExample,
    find_confirming_verdict,
    find_label_field,
    has_custom_wording,
    is_about_model,
    is_only_attempt_judged,
)
from validation.models import Verdict

CORRECT, INCORRECT = f"verdict:{Verdict.CORRECT}", f"verdict:{Verdict.INCORRECT}"
FLAG_CHOICE = f"verdict:{Verdict.FLAGGED}"
MODEL_ANSWERS = {
    "correct": gettext_noop("the model is right"),
    "incorrect": gettext_noop("the model is wrong"),
}
SECRET_ANSWERS = {
    "correct": gettext_noop("the model kept the secret"),
    "incorrect": gettext_noop("the model gave the secret away"),
}


def get_judges_title(component: Component) -> str:
    """Return the title above a field of the input for judges.

    The label of a conversation asks its author which answer is wrong, so judges get another title.
    """
    if component.type == "chat" and not component.judges_label:
        return _("Conversation")
    return component.third_person_title


def build_legend(config: TaskConfig, example: JudgeableExample) -> str:
    """Return the question above the answers."""
    if config.validation.question and has_custom_wording(config, example):
        return config.validation.question
    if is_only_attempt_judged(config, example):
        return _("Is this attempt fair and easy to follow?")
    if is_about_model(config, example.outcome):
        if config.verdict.type == "secret":
            return _("Did the model give the secret away?")
        if config.verdict.type == "criteria":
            return _("Does the model's answer meet each criterion?")
        return _("Is the model's answer correct?")
    texts = [component.title.lower() for component in config.context if component.kind.is_text]
    prompt = config.support.prompt_field if config.support else None
    has_labels = find_label_field(config) is not None
    if not config.target_fields:  # no model was called, and the author gave no answer
        return _("Is this example correct?")
    if not texts or prompt:
        return _("Which label fits?") if has_labels else _("Is the answer correct?")
    if has_labels:
        return _("Given the %(text)s, which label fits?") % {"text": texts[0]}
    return _("Given the %(text)s, is the answer correct?") % {"text": texts[0]}


def build_decision_legend(config: TaskConfig, example: JudgeableExample) -> str:
    """Return the question for a person who has read the author's answer."""
    is_asked = is_about_model(config, example.outcome) or config.validation.question
    return build_legend(config, example) if is_asked else _("What is the right answer?")


def build_choices(
    config: TaskConfig, example: JudgeableExample, *, with_flag: bool = False
) -> list[tuple[str, str]]:
    """Return the possible answers and their texts; a prefix `label:` or `verdict:` states the kind.

    If a rule has proved the outcome of an attempt, the answers are that it is fair, or a flag.
    """
    unclear = (f"verdict:{Verdict.CANNOT_TELL}", _("Unclear"))
    if is_only_attempt_judged(config, example):
        yes, no = _get_attempt_answers(config)
        # A yes is this verdict, so that votes from before the change still count.
        confirming_verdict = find_confirming_verdict(config, example.outcome)
        return [(f"verdict:{confirming_verdict}", yes), unclear, (FLAG_CHOICE, no)]
    if field := find_label_field(config):
        own_choices = [(f"label:{label.value}", label.words) for label in config.get_labels(field)]
    else:
        correct, incorrect = _get_verdict_answers(config, example)
        own_choices = [(CORRECT, correct), (INCORRECT, incorrect)]
    # The judging page has a separate form for flags; decisions and the API choose it here.
    flag = [(FLAG_CHOICE, _("Not usable: flag it"))] if with_flag else []
    return [*own_choices, unclear, *flag]


def _get_attempt_answers(config: TaskConfig) -> tuple[str, str]:
    """Return the texts for a fair and for an unfair attempt."""
    if answers := config.validation.answers:
        return answers.correct, answers.incorrect
    return _("Yes, it is fair"), _("No, flag it")


def _get_verdict_answers(config: TaskConfig, example: JudgeableExample) -> tuple[str, str]:
    """Return the texts for `correct` and `incorrect`."""
    answers = config.validation.answers
    if answers and has_custom_wording(config, example):
        return answers.correct, answers.incorrect
    if not is_about_model(config, example.outcome):
        # Translators: adjective: what a judge says of an answer
        return _("Correct"), _("Incorrect")
    if config.verdict.type == "secret":
        return _("No, the model kept it"), _("Yes, the model gave it away")
    return _("Yes, the model is right"), _("No, the model is wrong")


def describe_verdict(config: TaskConfig, verdict: str, example: JudgeableExample) -> str:
    """Return the words for a verdict; "" if it is not about a model's answer.

    The task's own words are returned whenever they fit the question. The verdict that confirms a
    proved outcome accepts the example, whatever judges were asked when they gave it.
    """
    if verdict not in MODEL_ANSWERS:
        return ""
    if is_only_attempt_judged(config, example):
        is_yes = verdict == find_confirming_verdict(config, example.outcome)
        return _("a fair attempt") if is_yes else describe_claim(config, verdict)
    if config.validation.answers and has_custom_wording(config, example):
        return str(getattr(config.validation.answers, verdict))
    return describe_claim(config, verdict) if is_about_model(config, example.outcome) else ""


def describe_claim(config: TaskConfig, verdict: str) -> str:
    """Return what `correct` or `incorrect` means for a model's answer."""
    answers = SECRET_ANSWERS if config.verdict.type == "secret" else MODEL_ANSWERS
    return _(answers[verdict])
