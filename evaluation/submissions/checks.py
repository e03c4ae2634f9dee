"""The checks of a submission's source, base and GPUs against its kind and the site."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from core.errors import Invalid
from evaluation.models import Submission
from evaluation.runs.chat.asking import check_settings
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.selectors import REMOTE, base_named
from evaluation.submissions.requirements import (
    PINNED_HUB_ID,
    gpu_problem,
    kinds_of,
    problem_of,
)
from evaluation.test_sets.selectors import open_versions
from tasks.models import Task

Kind = Submission.Kind


def settled_chat(
    task: Task, kind: str, source: str, secret: str, chat: ChatSettings | None
) -> dict[str, Any]:
    """Return the settings of a model that gets a prompt; empty for others. Raises Invalid."""
    if kind not in (Kind.CHAT, Kind.LLM):
        return {}
    return vars(check_settings(task, source, secret, chat, runs_here=kind == Kind.LLM))


def check_sources(submission: Submission) -> None:
    """Check source, base and GPUs of a submission. Raises Invalid, which names the field."""
    _check_source(submission)
    _check_base(submission)
    _check_gpus(submission)


def _check_source(submission: Submission) -> None:
    """Check what the model is made of, by its kind. Raises Invalid."""
    task, kind, version = submission.task, submission.kind, submission.evaluation_set
    kinds = kinds_of(task.config)
    if kind not in kinds:
        message = _("This task takes no model, but training data: `dynabench submit --rows FILE`.")
        if kinds != (Kind.ROWS,):
            message = _("This task takes: %s.") % ", ".join(kinds)
        raise Invalid(message, field="kind")
    problem = problem_of(
        kind,
        source=submission.source,
        revision=submission.revision,
        adapter=submission.adapter,
        has_upload=submission.upload is not None,
        has_set=version is not None,
        private_hosts=settings.SUBMISSION_PRIVATE_HOSTS,
    )
    if problem:
        field, sentence = problem
        raise Invalid(_(sentence), field=field)
    if version and not open_versions(task).filter(pk=version.pk).exists():
        message = _(
            "Predictions are for the newest version of a set whose inputs may be downloaded."
        )
        raise Invalid(message, field="evaluation_set")
    if kind in REMOTE and not task.evaluation_sets.filter(may_leave=True).exists():
        raise Invalid(
            _("No set of this task may be sent to an endpoint. Submit the model itself."),
            field="kind",
        )


def _check_base(submission: Submission) -> None:
    base, kind = submission.base, submission.kind
    if not base:
        return
    if kind != Kind.LLM:
        raise Invalid(_("Only an adapter of a language model has a base."), field="base")
    if PINNED_HUB_ID.fullmatch(base):  # whether the hub has it shows when it is fetched
        return
    base_model = None
    with suppress(ValueError):  # it is no id
        base_model = base_named(submission.task, submission.owner, UUID(base))
    if base_model is None:
        message = _(
            "Enter the base as organisation/name@commit with all 40 digits, or the id of a whole "
            "language model of this task that is published or yours. The model that comes with "
            "the site is none: its file has another format (GGUF)."
        )
        raise Invalid(message, field="base")


def _check_gpus(submission: Submission) -> None:
    if problem := gpu_problem(submission.kind, submission.gpus, settings.EVALUATION_GPUS):
        raise Invalid(_(problem), field="gpus")
