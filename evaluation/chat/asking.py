"""The endpoint of a submitted chat model, and the meter that holds it to its owner's cap."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils.translation import gettext as _

from dynabench.lib.errors import Invalid
from evaluation.chat.settings import ChatSettings, problem_of
from evaluation.chat.shots import draw
from evaluation.models import Submission
from evaluation.sandbox.meter import Meter
from evaluation.task_shape import runnable
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.targets.endpoints.base import QA_KIND, EndpointConfig, EndpointError
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint


def chat_endpoint(
    config: TaskConfig,
    url: str,
    secret: str,
    chat: ChatSettings,
    shots: Sequence[Mapping[str, Any]] = (),
) -> OpenAIChatEndpoint:
    """What asks the model; no call is made. Raises EndpointError(misconfigured)."""
    component, asked = config.component(config.answer_field), runnable(config)
    is_span = component.type == "span"
    passage = {"passage_field": component.reference} if is_span else {}
    return OpenAIChatEndpoint(
        EndpointConfig(
            url=url,
            fields=asked.fields,
            output=asked.output,
            labels=asked.labels,
            answer=component,
            media=config.media_fields,
            kind=QA_KIND if is_span else "remote",
            secret=secret or None,
            options={**chat.options(shots), **passage},
            allow_private_hosts=tuple(settings.SUBMISSION_PRIVATE_HOSTS),
        )
    )


def checked(task: Task, url: str, secret: str, chat: ChatSettings | None) -> ChatSettings:
    """The settings of a chat model, with the rows of its examples drawn. Raises Invalid."""
    if chat is None or not chat.model.strip():
        raise Invalid(_("Enter the name that the server gives the model."), field="model")
    if found := problem_of(task.config, chat):
        raise Invalid(_(found[1]) % found[2], field=found[0])
    chat = replace(chat, shot_items=draw(task, chat))
    try:
        chat_endpoint(task.config, url, secret, chat)
    except EndpointError as error:
        raise Invalid(str(error), field="source") from None
    return chat


def meter_of(submission: Submission) -> Meter:
    """Counts what a run of a chat model takes, and ends it where the owner's cap is reached."""
    chat = ChatSettings.of(submission.chat)
    mine = Submission.objects.filter(pk=submission.pk)

    def pay(cost: float) -> bool:
        """Add to what was spent, in one update; whether something is left of the cap."""
        mine.update(spent=F("spent") + cost)
        most = ChatSettings.of(mine.values_list("chat", flat=True).get()).most_cost
        return most is None or mine.filter(spent__lt=most).exists()

    return Meter(chat.price_in, chat.price_out, pay)
