"""Run the job that asks a language model for paraphrases."""

from collections.abc import Mapping
from dataclasses import replace

from django.utils.translation import gettext_noop

from core.errors import Refused
from evaluation.contract import ImpossibleJob
from evaluation.isolation.inference.evaluate import build_perturbation_scope
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.judges.paraphrases.selectors import choose_rows_to_paraphrase, compute_base_digest
from evaluation.judges.paraphrases.services import check_paraphrasing_allowed, find_text_fields
from evaluation.models import Paraphrase, Paraphrasing
from evaluation.runs.carriers import open_cluster_transport
from evaluation.runs.chat.target_services import TargetClient
from evaluation.scoring.paraphrase import make_paraphrase
from evaluation.test_sets.selectors import find_latest_version
from evaluation.test_sets.services import record_inputs_taken
from tasks.targets.connect import build_writer_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport

State = Paraphrase.State
INPUT_FIELD, OUTPUT_FIELD = "text", "paraphrase"
MODEL_CHANGED_MESSAGE = gettext_noop(
    "The model's URL or options have changed. Request paraphrases again."
)


def write_paraphrases(job: Paraphrasing) -> None:
    """Ask the model of a claimed job to paraphrase examples one by one, for people to check.

    Each paraphrase is stored immediately, outside any transaction, so that an interrupted job
    continues where it stopped. Takes no lock: the job is leased. Raises LeaseLost.
    """
    do_job_work(job, _write_paraphrases)


def _write_paraphrases(job: Paraphrasing, heartbeat: Heartbeat) -> None:
    with open_cluster_transport(job.target, heartbeat.beat) as transport:
        client = TargetClient(job, lambda: _make_endpoint(job, transport), MODEL_CHANGED_MESSAGE)
        try:
            _ask_about_rows(job, heartbeat, client)
        except Refused as refusal:
            raise ImpossibleJob(str(refusal)) from None
    report = {"calls": client.call_count, "failures": client.failure_count}
    heartbeat.call_patiently(lambda: leases.finish_job(job, report=report))


def _ask_about_rows(job: Paraphrasing, heartbeat: Heartbeat, client: TargetClient) -> None:
    """Ask for paraphrases, and store for each example its paraphrase or that it has none.

    Raises Refused and WorkStopped.
    """
    evaluation_set = job.evaluation_set
    config, version = evaluation_set.task.config, find_latest_version(evaluation_set)
    # Checked again: the set may have changed since the request.
    check_paraphrasing_allowed(evaluation_set, job.target)
    assert version is not None  # otherwise `check_paraphrasing_allowed` has raised
    # The inputs are sent to somebody else's machine.
    if job.target.url:
        record_inputs_taken(version, job.requested_by)
    rows = choose_rows_to_paraphrase(job, version)
    scope = replace(build_perturbation_scope(config), fields=find_text_fields(config))
    for number, row in enumerate(rows):
        heartbeat.report_progress(number / len(rows), gettext_noop("writing paraphrases"))
        variant = make_paraphrase(
            lambda text: _ask_for_paraphrase(client, text), row, scope, seed=0
        )
        fields: dict[str, str] = {}
        if variant is not None:
            fields = _find_changes(row.inputs, variant.row.inputs)
        state = State.WAITING if fields else State.UNFIT
        Paraphrase.objects.create(
            job=job, uid=row.uid, base=compute_base_digest(row), fields=fields, state=state
        )


def _make_endpoint(job: Paraphrasing, transport: Transport | None) -> Endpoint:
    return build_writer_endpoint(
        job.target,
        read_field=INPUT_FIELD,
        output=OUTPUT_FIELD,
        prompt=job.prompt,
        transport=transport,
    )


def _ask_for_paraphrase(client: TargetClient, text: str) -> str:
    """Return the model's paraphrase of the text, or the text itself if the call failed."""
    answer = client.ask({INPUT_FIELD: text})
    return text if answer is None else str(answer[OUTPUT_FIELD])


def _find_changes(old_texts: Mapping[str, str], new_texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in new_texts.items() if old_texts[name] != text}
