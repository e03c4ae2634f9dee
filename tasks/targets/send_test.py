"""Sending a target one input, to see whether and how it answers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from core.files.places import without_places
from core.outside import Hanging, Places
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import TargetModel
from tasks.targets.connect import build_messages, get_endpoint, get_secret
from tasks.targets.contact_services import Contact, build_contact, note_lasting_contact
from tasks.targets.endpoints.base import EndpointError, Prediction, Reason, Usage
from tasks.targets.endpoints.server_words import mask_copies
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

TEST_SECONDS = 20.0
TOO_MANY_MESSAGE = "Others are testing targets that do not answer. Try again in a minute."
_places = Places()  # of threads that wait for a test
REASON_MESSAGES: Mapping[Reason, str] = {
    "down": "The target cannot be reached.",
    "slow": "The target did not answer in time.",
    "busy": "The target is busy and asked to be left alone for a moment.",
    "rubbish": "The target answered, but not with a valid prediction.",
    "refused": "The server refused this input.",
    "too_long": "This input is too long for the model.",
    "filtered": "A content filter stopped the answer.",
    "declined": "The model declined to answer this input.",
    "empty": "The model answered nothing.",
    "unmatched": "The model's answer is none of the possible answers.",
    "unfinished": "The model did not finish its answer within max_tokens.",
    "misconfigured": "Something in the target's settings must be changed.",
}


class NoAnswer(Exception):
    """Raised if a target gave no usable answer. detail, usage: those of the EndpointError."""

    def __init__(self, reason: Reason, detail: str, usage: Usage | None = None) -> None:
        super().__init__(REASON_MESSAGES[reason])
        self.reason, self.detail, self.usage = reason, detail, usage

    @property
    def more(self) -> str:
        """Return the detail without what the message says already."""
        return self.detail.removeprefix(str(self).rstrip(".")).lstrip(":. ")


@contextmanager
def reserve_place() -> Iterator[None]:
    """Take one of the few places for requests that wait for a model outside a round.

    Raises NoAnswer if none is free.
    """
    try:
        # A model that hangs holds its place until the timeout, so others are refused and not
        # queued.
        with _places.take():
            yield
    except Hanging:
        raise NoAnswer("busy", TOO_MANY_MESSAGE) from None


def send_test(target: TargetModel, inputs: Mapping[str, Any]) -> Prediction:
    """Return the answer of `ask_within_budget`, and store it at the target. Raises NoAnswer."""
    try:
        answer = ask_within_budget(target, inputs)
    except NoAnswer as error:
        note_test(target, error)
        raise
    note_test(target, answer)
    return answer


def ask_within_budget(
    target: TargetModel, inputs: Mapping[str, Any], *, seconds: float = TEST_SECONDS
) -> Prediction:
    """Return the answer of `ask_target` within the target's budgets. Raises NoAnswer.

    The use is counted outside rounds.
    """
    payer, usage = Payer(target), None
    try:
        check_budget(payer)
        with reserve_place():
            answer = ask_target(target, inputs, seconds=seconds)
        usage = answer.usage
    except SpentError as error:
        raise NoAnswer(error.reason, str(error)) from None
    except NoAnswer as error:
        usage = error.usage
        raise
    # Also after a failure: a model that wrote and was then refused has cost something.
    finally:
        note_uses([payer], [usage])
    return answer


def note_test(target: TargetModel, result: Prediction | NoAnswer) -> None:
    """Store the result of a test, except a failure that concerns only this text."""
    if isinstance(result, Prediction):
        note_lasting_contact(target, build_contact(result))
    else:
        note_lasting_contact(target, Contact(result.reason, result.detail))


def ask_target(
    target: TargetModel, inputs: Mapping[str, Any], *, seconds: float = TEST_SECONDS
) -> Prediction:
    """Return the target's answer to one example, with any copy of its secret removed.

    Call it outside transactions: it may take `seconds`. Raises NoAnswer.
    """
    # Read in the `try`: a secret that cannot be decrypted is a failure of the target, too.
    secret = None
    if target.task.config.kind == "arena":
        inputs = {"messages": build_messages((), str(inputs["messages"]))}
    try:
        secret = get_secret(target)
        read = prepare_for_models(target.task.config, target.task, inputs)
        answer = get_endpoint(target).predict([read], deadline_seconds=seconds)[0]
    except EndpointError as error:
        detail = mask_secret(secret, str(error))
        raise NoAnswer(error.reason, detail, error.usage) from None
    # A target may repeat how it was asked, and its answer is shown to people and stored.
    output, fingerprint = (
        mask_secret(secret, answer.output),
        mask_secret(secret, answer.fingerprint),
    )
    return replace(answer, output=output, fingerprint=fingerprint)


def format_answer(answer: Prediction) -> dict[str, Any]:
    """Return the texts that pages show for an answer."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2)

    return {
        "output": text(answer.output),
        "prob": text(answer.prob) if answer.prob else "",
        "seconds": answer.seconds,
        "fingerprint": text(answer.fingerprint),
    }


def mask_secret(secret: str | None, value: Any) -> Any:
    """Return a JSON value with [secret] for the secret and … for folders of this server."""
    if isinstance(value, Mapping):
        masked_items = {}
        for name, item in value.items():
            masked_items[mask_secret(secret, name)] = mask_secret(secret, item)
        return masked_items
    if isinstance(value, list | tuple):
        return [mask_secret(secret, item) for item in value]
    if not isinstance(value, str):
        return value
    return without_places(mask_copies(secret, value))
