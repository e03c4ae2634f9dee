"""Paraphrases of a set, as a model would have written them."""

from evaluation.judges.paraphrases.selectors import compute_base_digest
from evaluation.models import EvaluationSetVersion, Paraphrase, Paraphrasing
from evaluation.test_sets.selectors import read_set_rows
from tests.support.judged_answers import chat_target


def paraphrased(version: EvaluationSetVersion, state: str = "waiting") -> None:
    """A paraphrase of each example."""
    one = version.evaluation_set
    target = chat_target(one.task, "http://127.0.0.1:1/v1", model="m")
    job = Paraphrasing.objects.create(
        evaluation_set=one, target=target, prompt="Say it.", asked_with={}, size=9, state="done"
    )
    Paraphrase.objects.bulk_create(
        Paraphrase(
            job=job,
            uid=row.uid,
            base=compute_base_digest(row),
            fields={"premise": "So it is."},
            state=state,
        )
        for row in read_set_rows(version)
    )
