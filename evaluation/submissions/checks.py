"""The checks of a submission's source, base and GPUs against its kind and the site."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from core.errors import Invalid
from evaluation.kinds import KINDS, kinds_of
from evaluation.models import Submission
from evaluation.runs.chat.asking import check_settings
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.selectors import find_base
from evaluation.submissions.kinds import find_submission_kind
from evaluation.submissions.requirements import (
    PINNED_HUB_ID,
    Sources,
    find_gpu_problem,
)
from evaluation.test_sets.selectors import select_open_versions
from tasks.models import Task


def make_stored_chat(
    task: Task, kind: str, source: str, secret: str, chat: ChatSettings | None
) -> dict[str, Any]:
    """Return the chat settings to store for a model with a prompt; empty for other models.

    Raises Invalid.
    """
    facts = KINDS.get(kind)
    if facts is None or not facts.has_prompt:
        return {}
    return vars(check_settings(task, source, secret, chat, runs_here=facts.writes_here))


def check_sources(submission: Submission) -> None:
    """Check the source, base and GPUs of a submission. Raises Invalid, which names the field."""
    _check_source(submission)
    _check_base(submission)
    _check_gpus(submission)


def _check_source(submission: Submission) -> None:
    """Check the source of a model as its kind requires. Raises Invalid."""
    task, version = submission.task, submission.evaluation_set
    kind, kinds = find_submission_kind(submission.kind), kinds_of(task.config)
    if kind is None or kind.name not in kinds:
        message = _("This task takes no model, but training data: `dynabench submit --rows FILE`.")
        if not task.config.training_rows:
            message = _("This task takes: %s.") % ", ".join(kinds)
        raise Invalid(message, field="kind")
    problem = kind.problem(
        Sources(
            source=submission.source,
            revision=submission.revision,
            adapter=submission.adapter,
            has_upload=submission.upload is not None,
            has_set=version is not None,
            private_hosts=settings.SUBMISSION_PRIVATE_HOSTS,
        )
    )
    if problem:
        field, sentence = problem
        raise Invalid(_(sentence), field=field)
    if version and not select_open_versions(task).filter(pk=version.pk).exists():
        message = _(
            "Predictions are for the newest version of a set whose inputs may be downloaded."
        )
        raise Invalid(message, field="evaluation_set")
    if kind.is_remote and not task.evaluation_sets.filter(may_leave=True).exists():
        raise Invalid(
            _("No set of this task may be sent to an endpoint. Submit the model itself."),
            field="kind",
        )


def _check_base(submission: Submission) -> None:
    base = submission.base
    if not base:
        return
    if not KINDS[submission.kind].writes_here:
        raise Invalid(_("Only an adapter of a language model has a base."), field="base")
    if PINNED_HUB_ID.fullmatch(base):  # whether the hub has it shows when it is fetched
        return
    base_model = None
    with suppress(ValueError):  # it is no id
        base_model = find_base(submission.task, submission.owner, UUID(base))
    if base_model is None:
        message = _(
            "Enter the base as organisation/name@commit with all 40 digits, or the id of a whole "
            "language model of this task that is published or yours. The model that comes with "
            "the site is none: its file has another format (GGUF)."
        )
        raise Invalid(message, field="base")


def _check_gpus(submission: Submission) -> None:
    may_use = KINDS[submission.kind].may_use_gpu
    if problem := find_gpu_problem(may_use, submission.gpus, settings.EVALUATION_GPUS):
        raise Invalid(_(problem), field="gpus")
