"""Call a model once when it is registered, so that wrong settings are noticed there."""

from collections.abc import Callable, Mapping
from typing import Any

from core.accounts.models import User
from core.web.throttles import is_used_up
from tasks.models import Generator, TargetModel
from tasks.targets.ask_before_opening import PLAIN_TEXT, build_sample, fill_inputs
from tasks.targets.connect import (
    get_endpoint,
    get_generator_endpoint,
    get_secret,
    list_generator_fields,
)
from tasks.targets.contact_services import (
    Contact,
    build_contact,
    note_contact,
    note_lasting_contact,
)
from tasks.targets.endpoints.base import Endpoint, EndpointError
from tasks.targets.send_test import NoAnswer, ask_within_budget, mask_secret, reserve_slot
from tasks.targets.spending_services import MeteredEndpoint, Payer

CONTACT_SECONDS = 10.0
TRANSIENT_REASONS = ("down", "slow", "busy")
"""Reasons for which a call to our own model server may fail while it starts or loads a model."""
SAMPLE_GOAL = "Write one short example."


def try_target(target: TargetModel, actor: User | None) -> Contact | None:
    """Send a target the task's example and store the result; return None if it was not called.

    If the task's example needs more than texts, only the target's description is requested. Counts
    against the person's limit on tests. Call it outside transactions: it may take CONTACT_SECONDS.
    """
    return _store_contact(target, actor, lambda: _ask_target(target))


def try_generator(generator: Generator, actor: User | None) -> Contact | None:
    """Ask a generator for a text and store the result, or return None. See `try_target`."""
    return _store_contact(generator, actor, lambda: _ask_generator(generator))


def try_chat(
    target: TargetModel,
    actor: User,
    build_endpoint: Callable[[], Endpoint],
    inputs: Mapping[str, Any],
) -> Contact | None:
    """Send a target's chat model one test with another prompt; return None if it was not called.

    build_endpoint: returns the endpoint. A model on our own model server is not called here,
    because the background job loads it on demand. The result is stored with the target unless it
    concerns only this text.
    """
    # What our own model server has is loaded on demand, which the job does.
    if not target.url or is_used_up("test", actor.pk):
        return None
    try:
        endpoint = MeteredEndpoint(build_endpoint(), Payer(target))
        with reserve_slot():
            [answer] = endpoint.predict([inputs], deadline_seconds=CONTACT_SECONDS)
        message = mask_secret(get_secret(target), build_contact(answer).words)
        contact = Contact("", message)
    except NoAnswer:  # others wait for models that hang
        return None
    except EndpointError as error:
        contact = build_failed_contact(target, error)
    note_lasting_contact(target, contact)
    return contact


def _store_contact(
    row: TargetModel | Generator, actor: User | None, ask: Callable[[], Contact]
) -> Contact | None:
    # Counted together with tests, so that saving a target again and again asks no more often.
    if actor and is_used_up("test", actor.pk):
        return None
    contact = ask()
    # While our own model server starts or loads, silence says nothing about the settings.
    if row.url or contact.reason not in TRANSIENT_REASONS:
        note_contact(row, contact)
    return contact


def _ask_target(target: TargetModel) -> Contact:
    inputs = fill_inputs(target.task, build_sample(target.task))
    try:
        if inputs is not None:
            return build_contact(ask_within_budget(target, inputs, seconds=CONTACT_SECONDS))
        with reserve_slot():
            name = get_endpoint(target).info(deadline_seconds=CONTACT_SECONDS).name
    except NoAnswer as error:
        return Contact(error.reason, error.detail)
    except EndpointError as error:
        return build_failed_contact(target, error)
    return Contact("", name)


def _ask_generator(generator: Generator) -> Contact:
    task = generator.task
    sample = build_sample(task)
    inputs = {name: sample.get(name, PLAIN_TEXT) for name in list_generator_fields(task.config)}
    try:
        endpoint = get_generator_endpoint(generator)
        with reserve_slot():
            [answer] = endpoint.predict(
                [{**inputs, "goal": SAMPLE_GOAL}], deadline_seconds=CONTACT_SECONDS
            )
        contact = build_contact(answer)
    except NoAnswer as error:
        return Contact(error.reason, error.detail)
    except EndpointError as error:
        return build_failed_contact(generator, error)
    return Contact("", mask_secret(get_secret(generator), contact.words))


def build_failed_contact(row: TargetModel | Generator, error: EndpointError) -> Contact:
    """Return the contact for a failure, with the secret masked."""
    return Contact(error.reason, mask_secret(_read_secret(row), str(error)))


def _read_secret(row: TargetModel | Generator) -> str | None:
    """Return the secret, or None if it cannot be decrypted."""
    try:
        return get_secret(row)
    except EndpointError:
        return None
