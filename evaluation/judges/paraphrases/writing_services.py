"""Run the job that asks a language model for paraphrases."""

from collections.abc import Mapping
from dataclasses import replace

from django.utils.translation import gettext_noop

from core.errors import Refused
from evaluation.contract import ImpossibleJob
from evaluation.isolation.inference.evaluate import perturbation_scope_of
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.judges.paraphrases.selectors import choose_rows_to_paraphrase, compute_base_digest
from evaluation.judges.paraphrases.services import check_may_ask, find_text_fields
from evaluation.models import Paraphrase, Paraphrasing
from evaluation.runs.carriers import open_cluster_transport
from evaluation.runs.chat.target_services import Asker
from evaluation.scoring.paraphrase import make_paraphrase
from evaluation.test_sets.selectors import find_latest_version
from evaluation.test_sets.services import note_taken
from tasks.targets.connect import build_writer_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport

State = Paraphrase.State
READS, WRITES = "text", "paraphrase"
MODEL_CHANGED = gettext_noop(
    "The model, its address or its options are not those that it was asked with at first. Ask for "
    "paraphrases again."
)


def write_paraphrases(job: Paraphrasing) -> None:
    """Have the model of a claimed job paraphrase one example after the other, for people to check.

    Each paraphrase is stored immediately, outside any transaction, so that an interrupted job
    continues where it stopped. Takes no lock: the job is leased. Raises LeaseLost.
    """
    carry_through(job, _write)


def _write(job: Paraphrasing, heartbeat: Heartbeat) -> None:
    with open_cluster_transport(job.target, heartbeat.beat) as by:
        asker = Asker(job, lambda: _make_endpoint(job, by), MODEL_CHANGED)
        try:
            _ask_about_rows(job, heartbeat, asker)
        except Refused as refused:
            raise ImpossibleJob(str(refused)) from None
    report = {"calls": asker.calls, "failures": asker.failures}
    heartbeat.patiently(lambda: leases.finish_job(job, report=report))


def _ask_about_rows(job: Paraphrasing, heartbeat: Heartbeat, asker: Asker) -> None:
    """Store for each example its paraphrase, or that it has none. Raises Refused, WorkStopped."""
    evaluation_set = job.evaluation_set
    config, version = evaluation_set.task.config, find_latest_version(evaluation_set)
    # Checked again: the set may have changed since the request.
    check_may_ask(evaluation_set, job.target)
    assert version is not None  # `check_may_ask` has refused otherwise
    # The inputs leave for somebody else's machine.
    if job.target.url:
        note_taken(version, job.requested_by)
    rows = choose_rows_to_paraphrase(job, version)
    reading = replace(perturbation_scope_of(config), fields=find_text_fields(config))
    for number, row in enumerate(rows):
        heartbeat.tell(number / len(rows), gettext_noop("writing paraphrases"))
        variant = make_paraphrase(
            lambda text: _ask_for_paraphrase(asker, text), row, reading, seed=0
        )
        fields: dict[str, str] = {}
        if variant is not None:
            fields = _find_changes(row.inputs, variant.row.inputs)
        state = State.WAITING if fields else State.UNFIT
        Paraphrase.objects.create(
            job=job, uid=row.uid, base=compute_base_digest(row), fields=fields, state=state
        )


def _make_endpoint(job: Paraphrasing, by: Transport | None) -> Endpoint:
    return build_writer_endpoint(
        job.target, read_field=READS, output=WRITES, prompt=job.prompt, by=by
    )


def _ask_for_paraphrase(asker: Asker, text: str) -> str:
    """Return the model's paraphrase of the text, or the text itself if the call failed."""
    answer = asker.ask({READS: text})
    return text if answer is None else str(answer[WRITES])


def _find_changes(old_texts: Mapping[str, str], new_texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in new_texts.items() if old_texts[name] != text}
