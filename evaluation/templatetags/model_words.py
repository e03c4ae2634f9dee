"""Words for runs and metrics."""

from collections.abc import Mapping

from django import template

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun

register = template.Library()

ENDINGS: Mapping[str, str] = {
    Outcome.OK: "Scored",
    Outcome.MODEL_ERROR: "The model ended with an error",
    Outcome.OOM: "The model needed too much memory",
    Outcome.TIMEOUT: "The model took too long",
    Outcome.OUTPUT_TOO_LARGE: "The model wrote too much",
    Outcome.INVALID_OUTPUT: "An answer did not fit",
    Outcome.REJECTED: "Not accepted",
    Outcome.INFRASTRUCTURE: "Our fault: it costs nothing and can be run again",
    Outcome.CANCELLED: "Cancelled",
}
STATES: Mapping[str, str] = {
    EvaluationRun.State.QUEUED: "Waits",
    EvaluationRun.State.RUNNING: "Running",
    EvaluationRun.State.LOST: "Lost: our fault, it can be run again",
}


@register.filter
def ending(run: EvaluationRun) -> str:
    """How a run ended, or how far it is, with the sentence that explains it."""
    words = STATES.get(run.state) or ENDINGS.get(run.outcome, run.state)
    said = run.error or run.message
    return f"{words}. {said}" if said else f"{words}."


METRICS: Mapping[str, str] = {
    "macro_f1": "Macro F1",
    "squad_f1": "SQuAD F1",
    "dataperf_f1": "DataPerf F1",
    "vqa_accuracy": "VQA accuracy",
    "bleu": "BLEU",
    "sp_bleu": "spBLEU",
    "chrf": "chrF",
    "chrf_pp": "chrF++",
}


@register.filter
def metric(name: str) -> str:
    """A metric's or a kind's name in words: `worst_case` becomes “Worst case”.

    >>> metric("worst_case"), metric("macro_f1_after")
    ('Worst case', 'Macro F1 after')
    """
    base, _, when = name.rpartition("_")
    if base in METRICS and when in ("before", "after"):
        return f"{METRICS[base]} {when}"
    return METRICS.get(name) or name.replace("_", " ").capitalize()
