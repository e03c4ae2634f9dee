"""Find which examples of a set are paraphrased, and which paraphrases wait to be checked.

Only reads.
"""

import hashlib
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Any, NamedTuple

import orjson
from django.db.models import Count

from evaluation.contract import SetRow
from evaluation.models import EvaluationSet, EvaluationSetVersion, Paraphrase, Paraphrasing
from evaluation.test_sets.selectors import read_set_rows
from tasks.config.schema import TaskConfig

State = Paraphrase.State
SETTLED_STATES = (State.WAITING, State.KEPT)
"""States in which an example needs no further paraphrase."""


class PairToCheck(NamedTuple):
    """A paraphrase with its example, for people to check.

    texts: (field, original, paraphrase). others: (field, text) of the other inputs. gold: the right
    answers as texts.
    """

    paraphrase: Paraphrase
    texts: list[tuple[str, str, str]]
    others: list[tuple[str, str]]
    gold: list[str]


def compute_base_digest(row: SetRow) -> str:
    """Return a digest of the inputs and correct answers against which a paraphrase is checked."""
    return hashlib.sha256(orjson.dumps([row.inputs, row.gold])).hexdigest()


def choose_rows_to_paraphrase(job: Paraphrasing, version: EvaluationSetVersion) -> list[SetRow]:
    """Return the examples to paraphrase next, as many as the job still lacks, ordered by a hash.

    Examples that the job has tried, or that have a waiting or kept paraphrase, are left out.
    Examples that another job tried without success come last.
    """
    set_paraphrases = Paraphrase.objects.filter(job__evaluation_set=job.evaluation_set_id)
    job_uids = set(job.paraphrases.values_list("uid", flat=True))
    settled_uids = job_uids | set(
        set_paraphrases.filter(state__in=SETTLED_STATES).values_list("uid", flat=True)
    )
    tried_uids = set(set_paraphrases.values_list("uid", flat=True))
    rows = (row for row in read_set_rows(version) if row.uid not in settled_uids)

    def compute_sort_key(row: SetRow) -> tuple[bool, bytes]:
        # False sorts before True: examples that no model has tried come first.
        return row.uid in tried_uids, hashlib.sha256(row.uid.encode()).digest()

    return nsmallest(max(0, job.size - len(job_uids)), rows, key=compute_sort_key)


def count_by_state(evaluation_set: EvaluationSet) -> dict[str, int]:
    """Return the number of a set's paraphrases in each state, including zeros."""
    rows = Paraphrase.objects.filter(job__evaluation_set=evaluation_set).values_list("state")
    counts = dict(rows.annotate(n=Count("pk")).order_by())
    return {state.value: counts.get(state.value, 0) for state in State}


def iterate_current_paraphrases(
    version: EvaluationSetVersion, state: str
) -> Iterator[tuple[Paraphrase, SetRow]]:
    """Yield the paraphrases in a state, with their examples.

    Leaves out paraphrases whose example has changed or is not in the version.
    """
    state_paraphrases = Paraphrase.objects.filter(
        job__evaluation_set=version.evaluation_set_id, state=state
    )
    paraphrases = {paraphrase.uid: paraphrase for paraphrase in state_paraphrases.order_by("pk")}
    if not paraphrases:
        return
    for row in read_set_rows(version):
        paraphrase = paraphrases.get(row.uid)
        # An example that has changed since then needs another paraphrase.
        if paraphrase and paraphrase.base == compute_base_digest(row):
            yield paraphrase, row


def make_pair_to_check(config: TaskConfig, paraphrase: Paraphrase, row: SetRow) -> PairToCheck:
    """Return a paraphrase with what people need to check it: the model's inputs and the answers."""
    texts = []
    for name, new_text in paraphrase.fields.items():
        texts.append(
            (config.get_component(name).third_person_title, str(row.inputs[name]), new_text)
        )
    other_texts = []
    for name in config.model_fields:
        is_other = name not in paraphrase.fields and name not in config.media_fields
        if is_other and row.inputs.get(name):
            other_texts.append(
                (config.get_component(name).third_person_title, str(row.inputs[name]))
            )
    return PairToCheck(paraphrase, texts, other_texts, [_format_gold(gold) for gold in row.gold])


def _format_gold(gold: Any) -> str:
    if isinstance(gold, Mapping) and "text" in gold:  # a span
        gold = gold["text"]
    if isinstance(gold, list):
        return ", ".join(map(str, gold))
    return str(gold)
