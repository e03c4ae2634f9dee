"""The endpoint of a submitted chat model, and the meter that holds it to its owner's cap."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import get_ident
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils.translation import gettext as _

from core.errors import Invalid
from evaluation.isolation.sandbox.limits import Exceeded
from evaluation.isolation.sandbox.meter import Meter
from evaluation.models import Submission
from evaluation.runs.chat.settings import ChatSettings, problem_of, settings_for
from evaluation.runs.chat.shots import draw
from evaluation.task_shape import runnable
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.targets.endpoints.base import (
    QA_KIND,
    Endpoint,
    EndpointConfig,
    EndpointError,
    Prediction,
)
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint
from tasks.targets.spending_services import SpentError


def asked_as(config: TaskConfig, url: str = "", secret: str = "") -> EndpointConfig:
    """Return what a submitted model of a task reads, and the form of its answers."""
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


def chat_endpoint(
    config: TaskConfig,
    url: str,
    secret: str,
    chat: ChatSettings,
    shots: Sequence[Mapping[str, Any]] = (),
) -> OpenAIChatEndpoint:
    """Return the endpoint that asks the model, without calling it.

    Raises EndpointError(misconfigured).
    """
    asked = asked_as(config, url, secret)
    return OpenAIChatEndpoint(replace(asked, options={**chat.options(shots), **asked.options}))


NOWHERE = "https://example.org"  # which is not asked


def checked(
    task: Task, url: str, secret: str, chat: ChatSettings | None, *, runs_here: bool = False
) -> ChatSettings:
    """Check the settings of a chat model, and draw the examples for its prompt.

    runs_here: a language model on this site, which needs neither URL nor secret.
    Raises Invalid.
    """
    chat = chat or settings_for(task.config)
    if found := problem_of(task.config, chat, runs_here=runs_here):
        raise Invalid(_(found[1]) % found[2], field=found[0])
    chat = replace(chat, shot_items=draw(task, chat))
    try:
        chat_endpoint(task.config, NOWHERE if runs_here else url, secret, chat)
    except EndpointError as error:
        raise Invalid(str(error), field="kind" if runs_here else "source") from None
    return chat


class Capped:
    """A chat model's endpoint for who practises: each call counts towards its owner's cap."""

    def __init__(self, endpoint: Endpoint, submission: Submission) -> None:
        self._endpoint, self._meter, self._maker = endpoint, meter_of(submission), get_ident()
        self.info = endpoint.info

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        """Answer a batch as an endpoint does, and count its cost. Not in a transaction.

        Raises SpentError, too, when the owner's cap is reached.
        """
        try:
            self._meter.settle()
            found = self._endpoint.predict(batch, deadline_seconds=deadline_seconds)
            for said in found:
                self._meter.note(said.usage)
            return found
        except Exceeded as over:
            raise SpentError(over.ending.sentence, "busy", permanent=True) from None
        except EndpointError as error:
            if error.usage is not None:
                self._meter.note(error.usage)
            raise
        finally:
            with suppress(Exceeded):
                self._meter.settle()
            if get_ident() != self._maker:
                connection.close()


def meter_of(submission: Submission) -> Meter:
    """Return the meter of a chat model's run, which ends it at the owner's cap."""
    chat = ChatSettings.of(submission.chat)
    mine = Submission.objects.filter(pk=submission.pk)

    def pay(cost: float) -> bool:
        """Add to what was spent, in one update; whether something is left of the cap."""
        mine.update(spent=F("spent") + cost)
        most = ChatSettings.of(mine.values_list("chat", flat=True).get()).most_cost
        return most is None or mine.filter(spent__lt=most).exists()

    return Meter(chat.price_in, chat.price_out, pay)
