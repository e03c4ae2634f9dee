"""Check a submission's source, base and GPUs against its kind and the site."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from core.errors import Invalid
from evaluation.kinds import KINDS, find_kinds
from evaluation.models import Submission
from evaluation.runs.chat.asking import check_settings
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.selectors import find_base
from evaluation.submissions.kinds import find_submission_kind
from evaluation.submissions.requirements import (
    PINNED_HUB_ID_PATTERN,
    Sources,
    find_gpu_problem,
)
from evaluation.test_sets.selectors import select_open_versions
from tasks.models import Task


def build_stored_chat(
    task: Task, kind: str, source: str, secret: str, chat: ChatSettings | None
) -> dict[str, Any]:
    """Return the chat settings to store for a model with a prompt; empty for other models.

    Raises Invalid.
    """
    kind_facts = KINDS.get(kind)
    if kind_facts is None or not kind_facts.has_prompt:
        return {}
    return vars(check_settings(task, source, secret, chat, runs_here=kind_facts.writes_here))


def check_sources(submission: Submission) -> None:
    """Check the source, base and GPUs of a submission. Raises Invalid, which names the field."""
    _check_source(submission)
    _check_base(submission)
    _check_gpus(submission)


def _check_source(submission: Submission) -> None:
    """Check the source of a model as its kind requires. Raises Invalid."""
    task, version = submission.task, submission.evaluation_set
    kind, accepted_kinds = find_submission_kind(submission.kind), find_kinds(task.config)
    if kind is None or kind.name not in accepted_kinds:
        message = _(
            "This task accepts training data instead of models: `dynabench submit --rows FILE`."
        )
        if not task.config.training_rows:
            message = _("This task accepts only these kinds of models: %s.") % ", ".join(
                accepted_kinds
            )
        raise Invalid(message, field="kind")
    problem = kind.find_problem(
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
            "Submit predictions for the newest version of a test set with downloadable inputs."
        )
        raise Invalid(message, field="evaluation_set")
    if kind.is_remote and not task.evaluation_sets.filter(may_leave=True).exists():
        raise Invalid(
            _("None of this task's sets can be sent to an endpoint. Submit the model itself."),
            field="kind",
        )


def _check_base(submission: Submission) -> None:
    base = submission.base
    if not base:
        return
    if not KINDS[submission.kind].writes_here:
        raise Invalid(
            _("Leave the base model empty, because this model isn't an adapter."),
            field="base",
        )
    if PINNED_HUB_ID_PATTERN.fullmatch(base):  # the fetch shows whether the Hub has it
        return
    base_model = None
    with suppress(ValueError):  # it is not an id
        base_model = find_base(submission.task, submission.owner, UUID(base))
    if base_model is None:
        message = _(
            "Enter the base model as organisation/name@commit with all 40 digits, "
            "or the ID of a language model in this task. That model must be "
            "published or yours. The model that comes with this site is a GGUF "
            "file, so it can't be a base model."
        )
        raise Invalid(message, field="base")


def _check_gpus(submission: Submission) -> None:
    may_use = KINDS[submission.kind].may_use_gpu
    if problem := find_gpu_problem(may_use, submission.gpus, settings.EVALUATION_GPUS):
        raise Invalid(_(problem), field="gpus")
