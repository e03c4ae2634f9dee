"""The words of what judges are asked and may answer: those of the task, or the site's."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from validation.models import Verdict
from validation.rules.claims import has_own_words, is_about_model, label_field

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
    """Return what judges read above a field of the input.

    The label of a conversation asks its author which answer is wrong, so judges read another one.
    """
    if component.judges_label:
        return component.judges_label
    if component.type == "chat":
        return _("Conversation")
    return component.title.removeprefix("Your ").capitalize()


def legend(config: TaskConfig, outcome: str) -> str:
    """The question above the answers."""
    if config.validation.question and has_own_words(config, outcome):
        return config.validation.question
    if is_about_model(config, outcome):
        if config.verdict.type == "secret":
            return _("Did the model give the secret away?")
        return _("Is the model's answer correct?")
    texts = [c.title.lower() for c in config.context if c.kind.is_text]
    prompt = config.support.prompt_field if config.support else None
    has_labels = label_field(config) is not None
    if not config.target_fields:  # no model was asked, and the author gave no answer
        return _("Is this example correct?")
    if not texts or prompt:
        return _("Which one is right?") if has_labels else _("Is the answer correct?")
    if has_labels:
        return _("Given the %(text)s, which one is right?") % {"text": texts[0]}
    return _("Given the %(text)s, is the answer correct?") % {"text": texts[0]}


def decision_legend(config: TaskConfig, outcome: str) -> str:
    """Return the question above the answers of somebody who has read the author's."""
    is_asked = is_about_model(config, outcome) or config.validation.question
    return legend(config, outcome) if is_asked else _("What is right?")


def choices(config: TaskConfig, outcome: str, *, with_flag: bool = False) -> list[tuple[str, str]]:
    """What a validator can answer; `label:` or `verdict:` says which kind it is.

    outcome: of the example; with it the verdict may be about the model's answer.
    """
    if field := label_field(config):
        own = [(f"label:{label.value}", label.words) for label in config.labels(field)]
    else:
        correct, incorrect = _verdict_answers(config, outcome)
        own = [
            (f"verdict:{Verdict.CORRECT}", correct),
            (f"verdict:{Verdict.INCORRECT}", incorrect),
        ]
    flag = [(FLAG, _("Not usable: flag it"))] if with_flag else []
    return [*own, (f"verdict:{Verdict.CANNOT_TELL}", _("Unclear")), *flag]


def _verdict_answers(config: TaskConfig, outcome: str) -> tuple[str, str]:
    """Return the words for correct and for incorrect."""
    answers = config.validation.answers
    if answers and has_own_words(config, outcome):
        return answers.correct, answers.incorrect
    if not is_about_model(config, outcome):
        return _("Correct"), _("Incorrect")
    if config.verdict.type == "secret":
        return _("No, the model kept it"), _("Yes, the model gave it away")
    return _("Yes, the model is right"), _("No, the model is wrong")


def verdict_words(config: TaskConfig, verdict: str, outcome: str) -> str:
    """A verdict on a model's answer, or in the task's words; else empty."""
    if verdict not in OF_MODEL:
        return ""
    if config.validation.answers and has_own_words(config, outcome):
        return str(getattr(config.validation.answers, verdict))
    if not is_about_model(config, outcome):
        return ""
    words = OF_SECRET if config.verdict.type == "secret" else OF_MODEL
    return _(words[verdict])
