"""The endpoint of a submitted chat model, and the meter that enforces its owner's cost cap."""

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
from evaluation.isolation.sandbox.limits import LimitExceeded
from evaluation.isolation.sandbox.meter import Meter
from evaluation.models import Submission
from evaluation.runs.chat.settings import ChatSettings, find_settings_problem, make_chat_settings
from evaluation.runs.chat.shots import draw_shots
from evaluation.task_shape import make_runnable
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


def make_endpoint_config(config: TaskConfig, url: str = "", secret: str = "") -> EndpointConfig:
    """Return the endpoint configuration of a submitted model: what it reads and how it answers."""
    component, model = config.get_component(config.answer_field), make_runnable(config)
    kind, options = "remote", {}
    if component.type == "span":
        kind, options = QA_KIND, {"passage_field": component.reference}
    return EndpointConfig(
        url=url,
        fields=model.fields,
        output=model.output,
        labels=model.labels,
        answer=component,
        media=config.media_fields,
        kind=kind,
        secret=secret or None,
        options=options,
        allow_private_hosts=tuple(settings.SUBMISSION_PRIVATE_HOSTS),
    )


def make_chat_endpoint(
    config: TaskConfig,
    url: str,
    secret: str,
    chat: ChatSettings,
    shots: Sequence[Mapping[str, Any]] = (),
) -> OpenAIChatEndpoint:
    """Return the endpoint of a chat model, without calling it.

    shots: the examples in the prompt, each with its fields and answer.
    Raises EndpointError(misconfigured).
    """
    endpoint_config = make_endpoint_config(config, url, secret)
    options = chat.build_options(shots) | dict(endpoint_config.options)
    return OpenAIChatEndpoint(replace(endpoint_config, options=options))


UNUSED_URL = "https://example.org"  # for an endpoint that only builds prompts and reads answers


def check_settings(
    task: Task, url: str, secret: str, chat: ChatSettings | None, *, runs_here: bool = False
) -> ChatSettings:
    """Check the settings of a chat model; return them with the examples drawn for its prompt.

    chat: None for the task's default settings.
    runs_here: whether the model runs on this site, and so needs neither URL nor secret.
    Raises Invalid.
    """
    chat = chat or make_chat_settings(task.config)
    if problem := find_settings_problem(task.config, chat, runs_here=runs_here):
        field, sentence, values = problem
        raise Invalid(_(sentence) % values, field=field)
    chat = replace(chat, shot_items=draw_shots(task, chat))
    field = "source"
    if runs_here:
        url, field = UNUSED_URL, "kind"
    try:
        make_chat_endpoint(task.config, url, secret, chat)  # only checks whether it can be created
    except EndpointError as error:
        raise Invalid(str(error), field=field) from None
    return chat


class CappedEndpoint:
    """A chat model's endpoint for practice, whose calls count towards its owner's cap."""

    def __init__(self, endpoint: Endpoint, submission: Submission) -> None:
        self._endpoint, self._meter, self._owner_thread = (
            endpoint,
            make_meter(submission),
            get_ident(),
        )
        self.info = endpoint.info

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        """Return the predictions for a batch, and count their cost. Call outside any transaction.

        Raises SpentError when the owner's cap is reached, and EndpointError.
        """
        try:
            self._meter.pay_for_tokens()
            predictions = self._endpoint.predict(batch, deadline_seconds=deadline_seconds)
            for prediction in predictions:
                self._meter.record_answer(prediction.usage)
            return predictions
        except LimitExceeded as error:
            raise SpentError(error.ending.sentence, "busy", is_permanent=True) from None
        except EndpointError as error:
            if error.usage is not None:  # an unusable answer also costs money
                self._meter.record_answer(error.usage)
            raise
        finally:
            with suppress(LimitExceeded):
                self._meter.pay_for_tokens()
            # A pool thread does not end with a request, and would keep its connection forever.
            if get_ident() != self._owner_thread:
                connection.close()


def make_meter(submission: Submission) -> Meter:
    """Return the meter for a chat model's run, which ends the run at the owner's cap."""
    chat = ChatSettings.from_stored(submission.chat)
    submission_row = Submission.objects.filter(pk=submission.pk)

    def pay(cost: float) -> bool:
        """Add a cost to the model's spending; return whether it is still below the cap."""
        # One update with F, because several runs of the model may pay at once. The cap is read
        # each time, because its owner may change it during a run.
        submission_row.update(spent=F("spent") + cost)
        most_cost = ChatSettings.from_stored(
            submission_row.values_list("chat", flat=True).get()
        ).most_cost
        return most_cost is None or submission_row.filter(spent__lt=most_cost).exists()

    return Meter(chat.price_in, chat.price_out, pay)
