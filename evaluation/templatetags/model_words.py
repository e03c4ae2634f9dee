"""Template filters that describe runs and metrics in words."""

from collections.abc import Mapping

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.files.paths import shorten_source
from core.numbers import format_decimal
from evaluation.contract import GIB, Outcome
from evaluation.models import EvaluationRun
from evaluation.scoring.metrics import METRICS
from evaluation.scoring.worst import GROUP_GAP, WORST_GROUP, WORST_KIND, WORST_KIND_DROP
from tasks.config.schema import CUSTOM_PREFIX, LLM_JUDGE

register = template.Library()
register.filter(shorten_source)

ENDINGS: Mapping[str, str] = {
    Outcome.OK: gettext_noop("Scored"),
    Outcome.MODEL_ERROR: gettext_noop("The model ended with an error"),
    Outcome.OOM: gettext_noop("The model needed too much memory"),
    Outcome.TIMEOUT: gettext_noop("The model took too long"),
    Outcome.OUTPUT_TOO_LARGE: gettext_noop("The model's output was too large"),
    Outcome.INVALID_OUTPUT: gettext_noop("An answer had the wrong format"),
    Outcome.OVER_BUDGET: gettext_noop("Cost cap reached. Raise it and run the evaluation again"),
    Outcome.REJECTED: gettext_noop("Not accepted"),
    Outcome.INFRASTRUCTURE: gettext_noop(
        "Error on our side. This run doesn't count. You can run the evaluation again"
    ),
    Outcome.AWAY: gettext_noop(
        "Another server didn't answer. This run doesn't count. You can run it again"
    ),
    Outcome.CANCELLED: gettext_noop("Cancelled"),
}
STATES: Mapping[str, str] = {
    # Translators: state: something has to happen first
    EvaluationRun.State.QUEUED: gettext_noop("Waiting"),
    # Translators: state of a job
    EvaluationRun.State.RUNNING: gettext_noop("Running"),
    EvaluationRun.State.LOST: gettext_noop(
        "Lost because of an error on our side. You can run it again"
    ),
}


@register.filter
def ending(run: EvaluationRun) -> str:
    """Return how a run ended, or its progress, with the sentence that explains it."""
    # While it waits or runs, its state is more informative; afterwards its outcome.
    words = _(STATES.get(run.state) or ENDINGS.get(run.outcome, run.state))
    sentence = _(run.error or run.message)
    return f"{words}. {sentence}" if sentence else f"{words}."


NAMES = (
    gettext_noop("African American"),
    gettext_noop("British"),
    # Translators: noun: whether a model's answer stays when the text is changed slightly
    gettext_noop("Consistency"),
    # Translators: noun: such as “isn't” for “is not”
    gettext_noop("Contractions"),
    gettext_noop("Doubled letters"),
    # Translators: noun: by how much a score falls
    gettext_noop("Drop"),
    gettext_noop("Dropped letters"),
    gettext_noop("Expansions"),
    gettext_noop("Extra spaces"),
    gettext_noop("Fairness"),
    gettext_noop("Fairness consistency"),
    gettext_noop("Fairness gap"),
    # Translators: noun: words without meaning that are added to a text
    gettext_noop("Filler"),
    gettext_noop("Given names"),
    gettext_noop("Group terms"),
    gettext_noop("Homoglyphs"),
    gettext_noop("Keyboard neighbour"),
    gettext_noop("Latency p95"),
    gettext_noop("Leet digits"),
    gettext_noop("Lower case"),
    # Translators: noun: gigabytes that a model needs
    gettext_noop("Memory"),
    gettext_noop("Memory mean"),
    gettext_noop("Misspellings"),
    gettext_noop("Missing spaces"),
    gettext_noop("Neutral suffix"),
    gettext_noop("No diacritics"),
    gettext_noop("No final punctuation"),
    gettext_noop("Other gender"),
    gettext_noop("Paraphrase"),
    gettext_noop("Robustness"),
    gettext_noop("Robustness consistency"),
    gettext_noop("Robustness drop"),
    gettext_noop("Swapped letters"),
    gettext_noop("Throughput"),
    gettext_noop("Upper case"),
    gettext_noop("Worst case"),
    gettext_noop("Zero width"),
)
"""The other names that `metric` returns, listed so that the translation catalogues have them."""


BOARD_NAME_BY_SCORE: Mapping[str, str] = {
    WORST_GROUP: "fairness",
    GROUP_GAP: "fairness_gap",
    WORST_KIND: "robustness",
    WORST_KIND_DROP: "robustness_drop",
}
"""The name of the board's column for each score that has another name in runs."""


@register.filter
def gib(size: int | str | None) -> str:
    """Return a number of bytes in GiB, as boards show memory; a dash if it is unknown.

    >>> gib(290_000_000), gib(None)
    ('0.27 GiB', '–')
    """
    return f"{format_decimal(float(size) / GIB, 2)} GiB" if size else "–"


@register.filter
def is_in_points(name: str) -> bool:
    """Return whether a metric is a difference of two shares, and so is shown in points.

    >>> is_in_points("group_gap"), is_in_points("accuracy")
    (True, False)
    """
    return name in (GROUP_GAP, WORST_KIND_DROP)


@register.filter
def metric(name: str) -> str:
    """Return a metric's or a kind's name in words: `worst_case` becomes “Worst case”.

    >>> metric("worst_case"), metric("macro_f1_after")
    ('Worst case', 'Macro F1 after')
    >>> metric("worst_group"), metric("fairness")
    ('Fairness', 'Fairness')
    >>> metric("custom:short-words"), metric("custom:short-words:2")
    ('Short words', 'Short words v2')
    """
    # Boards and scores name the same number differently.
    name = BOARD_NAME_BY_SCORE.get(name, name)
    # Perturbed suites have a number before and after for each metric.
    base, suffix = name.rpartition("_")[::2]
    if base and suffix == "before":
        # Translators: metric: a measure; before the training date
        return _("%(metric)s before") % {"metric": metric(base)}
    if base and suffix == "after":
        # Translators: metric: a measure; after the training date
        return _("%(metric)s after") % {"metric": metric(base)}
    if name == LLM_JUDGE:
        return _("LLM judge")
    if name.startswith(CUSTOM_PREFIX):
        _prefix, own_name, *version = name.split(":")
        return " v".join([own_name.replace("-", " ").capitalize(), *version])
    if name in METRICS:
        return _(METRICS[name].title)
    return _(name.replace("_", " ").capitalize())
