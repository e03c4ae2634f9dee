"""Writes of a message in a battle: both models are asked, and both answers are stored or neither.

No model is asked in a transaction. Locks: docs/locking.md.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.attempts.live_targets import (
    Answers,
    get_affordable_target,
    get_failure_code,
    record_spending,
    record_target_failure,
    submit_to_pool,
    wait_for_answers,
)
from annotation.attempts.partial_answers import build_recorder
from annotation.open_round import check_at_work
from annotation.refusals import CapReached, StaleForm
from core.accounts.models import Annotator
from core.text.words import composed
from leaderboard.arena.battles import selectors
from leaderboard.arena.battles.selectors import DrawnPair
from leaderboard.models import SIDES, Battle, Reply, Turn
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_messages, find_version_id
from tasks.targets.endpoints.base import EndpointError, Prediction, misconfigured, rubbish
from tasks.targets.endpoints.live import LiveTarget, Writer
from tasks.targets.spending_services import Payer
from validation.judging.confirmed import check_may_decide

logger = logging.getLogger(__name__)
State = Turn.State


@transaction.atomic
def begin_turn(
    *,
    voter: Annotator,
    task: Task,
    battle: UUID | None,
    number: int,
    key: UUID,
    prompt: str,
    drawn: DrawnPair | None,
) -> tuple[Turn, bool]:
    """Return the turn with this key, and whether the caller must ask the models.

    battle, number: the values that the page showed. Without a battle, begin one with the pair
    `drawn`. A failed or lost turn is asked again.
    Locks the annotator, then the battle. Raises Stale, CapReached, NotAllowed.
    """
    check_at_work(voter, task)
    check_may_decide(voter, task)
    Annotator.objects.select_for_update(no_key=True).values_list("pk").get(pk=voter.pk)
    # A key that is there already is a double click, or a page that was loaded again.
    sent = Turn.objects.filter(battle__voter=voter, battle__task=task, key=key).first()
    if sent and sent.state != State.FAILED and not sent.is_lost:
        return _attach_battle(sent), False
    open_battles = selectors.select_battles(voter, task).filter(ended_at__isnull=True)
    current = open_battles.select_for_update(of=("self",)).first()
    current_uuid = current.uuid if current else None
    if current_uuid != battle:
        raise StaleForm(_("This conversation has ended, or another one began in another window."))
    if current is None:
        assert drawn is not None  # of a page without a battle
        current = _begin_battle(voter, task, drawn)
    if number != _find_next_number(current):
        raise StaleForm(_("You went on with this conversation in another window."))
    if number > task.config.battles.turns:
        raise CapReached(_("This conversation is long enough. Please choose now."))
    # A failed turn keeps its row and number: turn_one_number allows no second one.
    turn, _created = Turn.objects.update_or_create(
        battle=current,
        number=number,
        defaults={
            "key": key,
            "prompt": composed(prompt),
            "state": State.ASKING,
            "failure": "",
            "asked_at": timezone.now(),
        },
    )
    return _attach_battle(turn), True


def _attach_battle(turn: Turn) -> Turn:
    """Attach the turn's battle with the related rows that its page shows."""
    task = turn.battle.task
    turn.battle = selectors.select_battles(turn.battle.voter, task).get(pk=turn.battle_id)
    turn.battle.task = task
    return turn


def _begin_battle(voter: Annotator, task: Task, drawn_pair: DrawnPair) -> Battle:
    """Begin a battle with a pair. Raises CapReached."""
    check_cap(voter, task)
    return Battle.objects.create(
        voter=voter,
        task=task,
        left_id=drawn_pair.left,
        right_id=drawn_pair.right,
        chance=drawn_pair.chance,
    )


def check_cap(voter: Annotator, task: Task) -> None:
    """Raise CapReached if the person has begun the maximum number of battles today."""
    max_battles = task.config.battles.per_day
    if selectors.count_begun_today(voter, task) >= max_battles:
        text = _("You have begun today's %(number)d conversations (reset at 00:00 UTC). Thank you!")
        raise CapReached(text % {"number": max_battles})


def _find_next_number(battle: Battle) -> int:
    """Return the number of the next message.

    0 if no message may be sent: while the models are answering, and for a gold pair.
    """
    last_turn = battle.turns.last()
    # A gold pair has one message, which is there from the start.
    if battle.gold_id or (last_turn and last_turn.state == State.ASKING and not last_turn.is_lost):
        return 0
    if last_turn is None:
        return 1
    if last_turn.state == State.DONE:
        return last_turn.number + 1
    return last_turn.number  # of a failed or lost one, which is sent again


def ask_models(turn: Turn, seconds: float | None = None) -> Turn:
    """Ask both models, store their answers and return the turn as it is after the wait.

    seconds: the maximum wait; by default as long as a page waits. If the models take longer, a
    thread of the pool stores the answers later.
    """
    try:
        sides = _attach_writers(turn, [_build_side(turn, side) for side in SIDES])
        answers = submit_to_pool(sides, {}, settings.LIVE_DEADLINE_SECONDS)
    except EndpointError as error:
        return _fail_with(turn, error)
    if wait_for_answers(answers, seconds):
        return _conclude_turn(turn, answers)
    asker = threading.get_ident()

    def conclude(_done: object) -> None:
        try:
            _conclude_turn(turn, answers)
        except Exception:
            logger.exception("turn %s could not be stored", turn.pk)
            raise
        finally:
            # The callback runs in this thread if the answers have just come. Only a thread of the
            # pool, which ends no request, must close its connection itself.
            if threading.get_ident() != asker:
                connection.close()

    answers.add_done_callback(conclude)
    return turn


def _build_side(turn: Turn, side: str) -> LiveTarget:
    """Return one of the models with its side of the conversation. Raises EndpointError."""
    exchanges = []
    for earlier in turn.battle.turns.all():
        if earlier.number < turn.number:
            for reply in earlier.replies.all():
                # Each model reads its own answers only, and nothing of the other model.
                if reply.side == side:
                    exchanges.append((earlier.prompt, reply.text))
    messages = build_messages(exchanges, turn.prompt)
    return replace(
        get_affordable_target(Payer(_find_target(turn.battle, side))), inputs={"messages": messages}
    )


def list_stream_keys(turn: Turn) -> list[str]:
    """Return the keys of both sides' partial answers, left and right (`partial_answers`)."""
    return [f"battle:{turn.pk}:{side}:{turn.asked_at.timestamp()}" for side in SIDES]


def _attach_writers(turn: Turn, sides: Sequence[LiveTarget]) -> Sequence[LiveTarget]:
    """Attach stream writers to both sides, if both models can stream.

    If only one of them can, neither streams, because that would tell them apart.
    """
    # A side that appears word by word beside one that appears at once would be told apart.
    if not all(isinstance(side.endpoint, Writer) for side in sides):
        return sides
    pairs = zip(sides, list_stream_keys(turn), strict=True)
    return [replace(side, heard=build_recorder(key)) for side, key in pairs]


def _find_target(battle: Battle, side: str) -> TargetModel:
    """Return the target of a side. Raises EndpointError if it was deleted."""
    target = battle.contestant(side).target
    if target is None:
        raise misconfigured("This model was deleted.")
    target.task = battle.task  # known, so not read again
    return target


def _conclude_turn(turn: Turn, answers: Answers) -> Turn:
    """Store the models' answers, or the reason for their failure, and return the updated turn."""
    # Calls are counted whether or not the answers can be used.
    record_spending([Payer(_find_target(turn.battle, side)) for side in SIDES], answers)
    if error := answers.exception():
        return _fail_with(turn, error)
    try:
        texts = [_read_text(prediction) for prediction in answers.result()]
        finish_turn(turn=turn, predictions=answers.result(), answers=texts)
    except EndpointError as error:
        return _fail_with(turn, error)
    except Exception:  # else the voter would wait for a turn that will never be stored
        fail_turn(turn=turn, reason="rubbish")
        raise
    return Turn.objects.select_related("battle").get(pk=turn.pk)


def _read_text(prediction: Prediction) -> str:
    """Return the text of a model's answer. Raises EndpointError if it cannot be shown."""
    text = next(iter(prediction.output.values()), None)
    if not isinstance(text, str):
        raise rubbish("The answer is no text.")
    return composed(text).strip()


def _fail_with(turn: Turn, error: BaseException) -> Turn:
    """Store that a turn failed, count the failure against its targets, and return the turn."""
    logger.warning("turn %s: %s", turn.pk, error)
    targets = [turn.battle.contestant(side).target for side in SIDES]
    record_target_failure(error, [target for target in targets if target])
    fail_turn(turn=turn, reason=get_failure_code(error))
    return Turn.objects.select_related("battle").get(pk=turn.pk)


def finish_turn(*, turn: Turn, predictions: Sequence[Prediction], answers: Sequence[str]) -> None:
    """Store both answers, left and right, with the settings of their models. Locks the battle.

    Does nothing if the turn has already ended.
    """
    # Before the lock: a new version costs a call to its target.
    replies = []
    for side, prediction, text in zip(SIDES, predictions, answers, strict=True):
        target = _find_target(turn.battle, side)
        reply = Reply(
            turn=turn,
            side=side,
            text=text,
            version_id=find_version_id(target, prediction.fingerprint),
            setup=_describe_setup(target),
            seconds=prediction.seconds,
        )
        replies.append(reply)
    # Locked, so that a vote, or leaving, cannot end the battle between the check and the replies.
    with transaction.atomic():
        locked = Battle.objects.select_for_update(of=("self",)).get(pk=turn.battle_id)
        if locked.ended_at is None and _end_turn(turn, State.DONE):
            Reply.objects.bulk_create(replies)


def _describe_setup(target: TargetModel) -> Mapping[str, Any]:
    """Return adapter, source, revision and options (prompt, sampling). They contain no secret."""
    # Stored with each answer, as owners may change their target later.
    return {name: getattr(target, name) for name in ("adapter", "source", "revision", "options")}


def fail_turn(*, turn: Turn, reason: str) -> None:
    """Fail a turn without two usable answers; its message may be sent again. Takes no lock."""
    _end_turn(turn, State.FAILED, reason)


def _end_turn(turn: Turn, state: str, failure: str = "") -> bool:
    """End a turn by a conditional update; return False if it had already ended."""
    # On condition of `asked_at`: the turn may have been given up as lost and asked again.
    rows = Turn.objects.filter(pk=turn.pk, state=State.ASKING, asked_at=turn.asked_at)
    return bool(rows.update(state=state, failure=failure))
