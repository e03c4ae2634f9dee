"""Writes to conversations: send a turn, store the target's answer, take turns back.

Turns are kept on the server and never read from a form. The lock is listed in docs/locking.md.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation import selectors
from annotation.attempts.live_targets import (
    Answers,
    ask_live_targets,
    build_model_inputs,
    get_failure_code,
    list_payers,
    record_spending,
    record_target_failure,
    wait_for_answers,
)
from annotation.attempts.own_copies import check_not_own_copy
from annotation.attempts.partial_answers import build_recorder, build_stream_key
from annotation.context_picking.services import check_supported_inputs
from annotation.models import Assignment, Conversation
from annotation.open_round import describe_closed_round
from annotation.refusals import CapReached, InvalidTurn, NotAllowed, RoundClosed, StaleForm
from core.text.words import compose
from core.web.throttles import is_used_up
from tasks.config.components import Component
from tasks.config.field_types.chat import SECRET_PLACEHOLDER, find_text_error, get_max_turns
from tasks.models import RoundTarget
from tasks.selectors import list_targets
from tasks.targets.endpoints.base import EndpointError, Prediction

logger = logging.getLogger(__name__)
Turn = Mapping[str, Any]
SYLLABLES = ["".join(letters) for letters in product("bdfgklmnprstvz", "aeiou")]


def strip_turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return the turns in the field's format, without the model's name and timing."""
    keys = ("role", "text", "secret")
    return [{key: turn[key] for key in keys if key in turn} for turn in turns]


def list_spoken_turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return the turns in the field's format, without the system message.

    Only these are sent to the browser.
    """
    return [turn for turn in strip_turns(turns) if turn["role"] != "system"]


def list_answered_turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return the turns before the target's last answer, in the field's format; empty without one.

    This is the conversation of a decision, whose last answer is the target's output.
    """
    for index in range(len(turns) - 1, -1, -1):
        if turns[index]["role"] == "assistant":
            return list_spoken_turns(turns[:index])
    return []


def get_conversation(assignment: Assignment) -> Conversation:
    """Return the assignment's conversation, created if missing. Chat tasks only."""
    talk = assignment.round.task.config.talk
    assert talk is not None
    conversation, _made = Conversation.objects.get_or_create(
        assignment=assignment, defaults={"turns": build_opening_turns(talk)}
    )
    return conversation


def build_opening_turns(
    talk: Component, draw: Callable[[Sequence[str]], str] = secrets.choice
) -> list[dict[str, str]]:
    """Return the system message of a new conversation, with a new secret word if it needs one.

    draw: chooses one of the syllables. Empty if the chat has no system message.
    """
    if talk.system is None:
        return []
    # The owners' message has no place for a secret, so there is none to get out of the model.
    if SECRET_PLACEHOLDER not in talk.system:
        return [{"role": "system", "text": talk.system}]
    secret = "".join(draw(SYLLABLES) for _ in range(4))
    return [
        {
            "role": "system",
            "text": talk.system.replace(SECRET_PLACEHOLDER, secret),
            "secret": secret,
        }
    ]


def say_turn(
    *, assignment: Assignment, text: str, turn_index: int, seconds: float | None = None
) -> Conversation:
    """Add the person's turn, ask the target, and return the conversation after the wait.

    turn_index: number of turns that the person saw; a turn that already exists at this index is
    not sent again, so a double click asks once. seconds: time to wait; None for a page's usual
    wait.
    Locks the conversation; the target is asked outside a transaction. Raises InvalidTurn,
    StaleForm, CapReached, RoundClosed, DuplicateExample, UnsupportedField.
    """
    conversation, must_ask = _store_person_turn(assignment, compose(text).strip(), turn_index)
    if must_ask:
        _ask_target(conversation, seconds)
        conversation.refresh_from_db()
    return conversation


def _store_person_turn(
    assignment: Assignment, text: str, turn_index: int
) -> tuple[Conversation, bool]:
    """Store the person's turn; return the conversation and whether to ask the target.

    A repeated turn, or one while the target is answering, is not stored. For errors, see
    `say_turn`.
    """
    talk = assignment.round.task.config.talk
    assert talk is not None
    _check_may_talk(assignment)
    unlocked_conversation = get_conversation(assignment)
    with transaction.atomic():
        # Created before, in its own transaction, so that there is a row to lock.
        conversation = _lock_conversation(unlocked_conversation, assignment)
        if conversation.is_asking or _is_turn_stored(conversation, text, turn_index):
            return conversation, False
        if len(conversation.turns) != turn_index:
            raise StaleForm(
                _("The conversation continued in another window, so this message wasn't sent.")
            )
        check_next_turn(conversation.turns, talk, text)
        if not any(turn["role"] == "user" for turn in conversation.turns):
            # Said now, it costs no answer of the model; a submit would refuse the copy anyway.
            check_not_own_copy(assignment, {talk.name: [{"role": "user", "text": text}]})
        if is_used_up("talk", conversation.assignment.annotator_id):
            raise CapReached(
                _("You've reached the hourly limit for this conversation. Try again in an hour.")
            )
        conversation.said, conversation.failure = text, ""
        conversation.asked_at = timezone.now()
        conversation.save(update_fields=["said", "failure", "asked_at"])
    return conversation, True


def check_next_turn(turns: Sequence[Turn], talk: Component, text: str) -> None:
    """Check that the text may be the next turn.

    Raises InvalidTurn for an invalid text, CapReached at the maximum number of turns.
    """
    if error := find_text_error(talk, text):
        raise InvalidTurn(error)
    turn_count, max_turns = sum(t["role"] == "user" for t in turns), get_max_turns(talk)
    if turn_count >= max_turns:
        message = ngettext(
            "You can write at most %(number)d turn in a conversation. Mark an answer, or edit an "
            "earlier turn.",
            "You can write at most %(number)d turns in a conversation. Mark an answer, or edit an "
            "earlier turn.",
            max_turns,
        )
        raise CapReached(message % {"number": max_turns})


def _check_may_talk(assignment: Assignment) -> None:
    check_supported_inputs(assignment.round.task.config)
    if not selectors.may_submit_example(assignment):
        raise RoundClosed(describe_closed_round(assignment.round))
    if assignment.left_at is not None:
        raise StaleForm(
            _(
                "You've started another example since you opened this page. Reload it to "
                "continue there."
            )
        )


def _lock_conversation(conversation: Conversation, assignment: Assignment) -> Conversation:
    # Of two tabs that send a turn the second finds it there, and asks nobody.
    row = Conversation.objects.select_for_update(of=("self",)).get(pk=conversation.pk)
    row.assignment = assignment
    return row


def _is_turn_stored(conversation: Conversation, text: str, turn_index: int) -> bool:
    turns = conversation.turns
    return (
        turn_index < len(turns)
        and turns[turn_index]["role"] == "user"
        and turns[turn_index]["text"] == text
    )


def _ask_target(conversation: Conversation, seconds: float | None) -> None:
    """Ask the target. This thread stores the answer, or a pool thread if it comes late."""
    assignment = conversation.assignment
    entries = list_targets(assignment.round)
    own_turn = {"role": "user", "text": conversation.said}
    talk = assignment.round.task.config.text_field
    turns = {talk: strip_turns([*conversation.turns, own_turn])}
    inputs = build_model_inputs(assignment.round, assignment.context.fields, turns)
    try:
        pending_answers = ask_live_targets(
            entries, inputs, build_recorder(build_stream_key(conversation))
        )
    except EndpointError as error:
        _store_failure(conversation, entries, error)
        return
    if wait_for_answers(pending_answers, seconds):
        _store_answer(conversation, entries, pending_answers)
        return
    asking_thread_id = threading.get_ident()

    def store_late_answer(_done: object) -> None:
        try:
            _store_answer(conversation, entries, pending_answers)
        finally:
            if threading.get_ident() != asking_thread_id:
                connection.close()

    pending_answers.add_done_callback(store_late_answer)


def _store_answer(
    conversation: Conversation, entries: Sequence[RoundTarget], pending_answers: Answers
) -> None:
    record_spending(list_payers(entries), pending_answers)
    if error := pending_answers.exception():
        _store_failure(conversation, entries, error)
        return
    # A chat has one target.
    prediction, config = pending_answers.result()[0], conversation.assignment.round.task.config
    answer = {
        "role": "assistant",
        "text": str(prediction.output[config.answer_field]),
        "target": entries[0].target_id,
        "seconds": prediction.seconds,
        "fingerprint": dict(prediction.fingerprint),
    }
    own_turn = {"role": "user", "text": conversation.said}
    turns = [*conversation.turns, own_turn, answer]
    # Without a lock: an answer to a turn that was taken back changes nothing.
    _select_asking_row(conversation).update(turns=turns, said="", asked_at=None)


def _store_failure(
    conversation: Conversation, entries: Sequence[RoundTarget], error: BaseException
) -> None:
    """Record a failed answer; the person's text is kept for another try."""
    reason = get_failure_code(error)
    logger.warning("conversation %s: %s: %s", conversation.pk, reason, error)
    record_target_failure(error, [entry.target for entry in entries])
    _select_asking_row(conversation).update(failure=reason, asked_at=None)


def _select_asking_row(conversation: Conversation) -> QuerySet[Conversation]:
    """Select the conversation's row, unless the turn has been taken back or resent."""
    asked_at: datetime | None = conversation.asked_at
    # `asked_at` is new with each turn, and empty once it was answered or taken back.
    return Conversation.objects.filter(pk=conversation.pk, asked_at=asked_at)


def take_back_turn(*, assignment: Assignment, turn: int, keeps_text: bool) -> None:
    """Take back a turn of the person and all later ones.

    keeps_text: whether to keep the turn's text for editing. A late answer to it is dropped. Locks
    the conversation. Raises StaleForm if there is no such turn, NotAllowed in a decision.
    """
    # What people have read of the model stays in the record of their decision.
    if assignment.round.task.config.verdict.type == "decide":
        raise NotAllowed(_("You can't take back a turn here. Write another one."))
    with transaction.atomic():
        conversation = _lock_conversation(get_conversation(assignment), assignment)
        turns = conversation.turns
        # The turn that is being answered can be taken back too, and its answer is then dropped.
        open_turns = [{"role": "user", "text": conversation.said}] if conversation.is_asking else []
        chosen_turn = dict(enumerate([*turns, *open_turns])).get(turn)
        if chosen_turn is None or chosen_turn["role"] != "user":
            raise StaleForm(_("This turn no longer exists. Reload the page."))
        conversation.turns = turns[:turn]
        conversation.said = chosen_turn["text"] if keeps_text else ""
        conversation.failure, conversation.asked_at = "", None
        conversation.save(update_fields=["turns", "said", "failure", "asked_at"])


def restart_conversation(*, assignment: Assignment) -> None:
    """Forget a conversation, so that the next turn begins another one, with another secret.

    A late answer to it is dropped. Takes no lock: a turn that is sent at this moment has no
    conversation to be stored in.
    """
    Conversation.objects.filter(assignment=assignment).delete()


def save_unsent_turn(*, assignment: Assignment, text: str) -> None:
    """Save the text that the person has typed but not sent, up to 10,000 characters.

    Does nothing while the target is answering.
    """
    # By conditional update, as the browser saves by itself and takes no lock.
    idle_conversations = Conversation.objects.filter(assignment=assignment, asked_at__isnull=True)
    # While the target answers, `said` is the turn that it answers.
    idle_conversations.update(said=text[:10_000])


def check_answered(assignment: Assignment) -> None:
    """Check that the model is not answering somebody who decides. Raises StaleForm."""
    if assignment.round.task.config.verdict.type != "decide":
        return
    conversation = Conversation.objects.filter(assignment=assignment).first()
    # The record would lack the answer that the person may read next.
    if conversation and conversation.is_asking:
        raise StaleForm(_("The model is still answering. Decide after its answer."))


def find_stored_answer(
    assignment: Assignment, turns: Sequence[Turn], entries: Sequence[RoundTarget]
) -> Prediction:
    """Return the target's answer to these turns, from the stored conversation.

    Raises StaleForm if the stored turns differ, no answer follows, or another target gave it.
    """
    conversation = Conversation.objects.filter(assignment=assignment).first()
    all_turns = [
        turn for turn in (conversation.turns if conversation else []) if turn["role"] != "system"
    ]
    # A turn that still waits for its answer is not among the held turns.
    answer = all_turns[len(turns)] if len(turns) < len(all_turns) else {}
    if answer.get("role") != "assistant" or strip_turns(all_turns[: len(turns)]) != [*turns]:
        raise StaleForm(_("The conversation continued in another window. Mark the answer again."))
    # What another model said may not count against the present one.
    if [answer["target"]] != [entry.target_id for entry in entries]:
        raise StaleForm(
            _("The model has been replaced since it gave this answer. Edit an earlier turn.")
        )
    output = {assignment.round.task.config.answer_field: answer["text"]}
    return Prediction(output, None, answer["seconds"], answer["fingerprint"])


def add_opening_turns(assignment: Assignment, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs to store, with the system message and any secret put back."""
    talk = assignment.round.task.config.talk
    conversation = Conversation.objects.filter(assignment=assignment).first() if talk else None
    if talk is None or conversation is None:
        return dict(inputs)
    opening_turns = [turn for turn in conversation.turns if turn["role"] == "system"]
    return {**inputs, talk.name: [*opening_turns, *inputs[talk.name]]}
