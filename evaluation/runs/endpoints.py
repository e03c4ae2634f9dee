"""How submitted models are asked over the network, and how their answers are read. No Docker."""

from django.conf import settings

from dynabench.lib.encryption import Unreadable, decrypt
from evaluation.chat.asking import chat_endpoint
from evaluation.chat.settings import ChatSettings
from evaluation.chat.shots import ShotsGone, shown
from evaluation.contract import ENDPOINT_ADAPTERS
from evaluation.models import Submission
from evaluation.task_shape import runnable
from tasks.config.schema import TaskConfig
from tasks.targets.connect import endpoint_of
from tasks.targets.endpoints.base import QA_KIND, Endpoint, EndpointConfig
from tasks.targets.endpoints.registry import build
from tasks.targets.spending_services import Metered, Payer


class CannotFetch(Exception):
    """A submission is not there as it was checked; the message says why."""


def endpoint_for(submission: Submission) -> Endpoint:
    """The endpoint at which a submission, or the target that it stands for, is asked.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    if submission.target:
        return Metered(endpoint_of(submission.target), Payer(submission.target))
    try:
        secret = decrypt(submission.secret)
    except Unreadable as error:
        raise CannotFetch(f"The endpoint's secret cannot be read: {error}") from None
    config = submission.task.config
    if submission.kind == Submission.Kind.CHAT:
        chat = ChatSettings.of(submission.chat)
        try:
            shots = shown(submission.task, chat)
        except ShotsGone as error:
            raise CannotFetch(str(error)) from None
        return chat_endpoint(config, submission.source, secret, chat, shots)
    asked = asked_as(config, submission.source, secret)
    return build(ENDPOINT_ADAPTERS[submission.adapter], asked)


def asked_as(config: TaskConfig, url: str = "", secret: str = "") -> EndpointConfig:
    """What a submitted model of a task reads, and what its answers must look like."""
    component, asked = config.component(config.answer_field), runnable(config)
    is_span = component.type == "span"
    return EndpointConfig(
        url=url,
        fields=asked.fields,
        output=asked.output,
        labels=asked.labels,
        answer=component,
        media=config.media_fields,
        kind=QA_KIND if is_span else "remote",
        secret=secret or None,
        options={"passage_field": component.reference} if is_span else {},
        allow_private_hosts=tuple(settings.SUBMISSION_PRIVATE_HOSTS),
    )
