"""Send a target one input, to see whether and how it answers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from core.files.paths import remove_paths
from core.outside import ServiceHanging, ThreadSlots
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import TargetModel
from tasks.targets.connect import build_messages, get_endpoint, get_secret
from tasks.targets.contact_services import Contact, build_contact, note_lasting_contact
from tasks.targets.endpoints.base import EndpointError, Prediction, Reason, Usage
from tasks.targets.endpoints.server_words import mask_copies
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

TEST_SECONDS = 20.0
TOO_MANY_MESSAGE = "Others are testing targets that do not answer. Try again in a minute."
_slots = ThreadSlots()  # of threads that wait for a test
REASON_MESSAGES: Mapping[Reason, str] = {
    "down": "The target cannot be reached.",
    "slow": "The target did not answer in time.",
    "busy": "The target is busy and asked us to wait a moment.",
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
    """Raised if a target gave no usable answer.

    reason, detail, usage: from the EndpointError.
    """

    def __init__(self, reason: Reason, detail: str, usage: Usage | None = None) -> None:
        super().__init__(REASON_MESSAGES[reason])
        self.reason, self.detail, self.usage = reason, detail, usage

    @property
    def extra_detail(self) -> str:
        """Return the part of the detail that the message does not repeat."""
        return self.detail.removeprefix(str(self).rstrip(".")).lstrip(":. ")


@contextmanager
def reserve_slot() -> Iterator[None]:
    """Reserve one of the few slots for requests that wait for a model outside a round.

    Raises NoAnswer if none is free.
    """
    try:
        # A model that hangs holds its place until the timeout, so others are refused and not
        # queued.
        with _slots.take_slot():
            yield
    except ServiceHanging:
        raise NoAnswer("busy", TOO_MANY_MESSAGE) from None


def send_test(target: TargetModel, inputs: Mapping[str, Any]) -> Prediction:
    """Return the target's answer within its budgets, and store the result. Raises NoAnswer."""
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
    """Return the target's answer to one example within its budgets. Raises NoAnswer.

    The usage is counted outside rounds.
    """
    payer, usage = Payer(target), None
    try:
        check_budget(payer)
        with reserve_slot():
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
    """Store the result of a test, unless it is a failure that concerns only this text."""
    if isinstance(result, Prediction):
        note_lasting_contact(target, build_contact(result))
    else:
        note_lasting_contact(target, Contact(result.reason, result.detail))


def ask_target(
    target: TargetModel, inputs: Mapping[str, Any], *, seconds: float = TEST_SECONDS
) -> Prediction:
    """Return the target's answer to one example, with any copy of its secret masked.

    Call it outside transactions: it may take `seconds`. Raises NoAnswer.
    """
    # Read in the `try`: a secret that cannot be decrypted is a failure of the target, too.
    secret = None
    if target.task.config.kind == "arena":
        inputs = {"messages": build_messages((), str(inputs["messages"]))}
    try:
        secret = get_secret(target)
        model_inputs = prepare_for_models(target.task.config, target.task, inputs)
        answer = get_endpoint(target).predict([model_inputs], deadline_seconds=seconds)[0]
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
    """Return an answer as texts for pages, and its seconds."""

    def format_json(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2)

    return {
        "output": format_json(answer.output),
        "prob": format_json(answer.prob) if answer.prob else "",
        "seconds": answer.seconds,
        "fingerprint": format_json(answer.fingerprint),
    }


def mask_secret(secret: str | None, value: Any) -> Any:
    """Return a JSON value with the secret masked and the folders of this server shortened."""
    if isinstance(value, Mapping):
        masked_items = {}
        for name, item in value.items():
            masked_items[mask_secret(secret, name)] = mask_secret(secret, item)
        return masked_items
    if isinstance(value, list | tuple):
        return [mask_secret(secret, item) for item in value]
    if not isinstance(value, str):
        return value
    return remove_paths(mask_copies(secret, value))
