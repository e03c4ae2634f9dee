"""Writes of a message in a battle: all models are asked, and all answers are stored or none.

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
from annotation.open_round import check_may_work_now
from annotation.refusals import CapReached, StaleForm
from core.accounts.models import Annotator
from core.text.words import compose
from leaderboard.arena.battles import selectors
from leaderboard.arena.battles.selectors import DrawnPair
from leaderboard.models import EXTRA_SIDES, Battle, BattleSide, Reply, Turn
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_messages, get_version_id
from tasks.targets.endpoints.base import (
    EndpointError,
    Prediction,
    build_misconfigured_error,
    build_rubbish_error,
)
from tasks.targets.endpoints.live import LiveTarget, Writer
from tasks.targets.spending_services import Payer
from validation.judging.confirmed import check_votes_count

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
    drawn_pair: DrawnPair | None,
) -> tuple[Turn, bool]:
    """Store a message as a turn; return the turn, and whether the caller must ask the models.

    battle, number: the values that the page showed. Without a battle, one begins with the pair
    `drawn_pair`. If a turn has this key already, it is returned and nothing is stored, unless it
    failed or was lost. A failed or lost turn is asked again. Locks the annotator, then the battle.
    Raises StaleForm, CapReached, NotAllowed.
    """
    check_may_work_now(voter, task)
    check_votes_count(voter, task)
    # Locks the person, because two tabs that begin a battle have no battle to lock yet.
    Annotator.objects.select_for_update(no_key=True).values_list("pk").get(pk=voter.pk)
    # An existing key means a double click or a reloaded page.
    stored_turn = Turn.objects.filter(battle__voter=voter, battle__task=task, key=key).first()
    if stored_turn and stored_turn.state != State.FAILED and not stored_turn.is_lost:
        return _attach_battle(stored_turn), False
    open_battles = selectors.select_battles(voter, task).filter(ended_at__isnull=True)
    current_battle = open_battles.select_for_update(of=("self",)).first()
    current_uuid = current_battle.uuid if current_battle else None
    if current_uuid != battle:
        raise StaleForm(
            _(
                "Your message wasn't sent, because you ended or replaced that "
                "conversation in another window. Send it again below."
            )
        )
    if current_battle is None:
        assert drawn_pair is not None  # pages without a battle have a drawn pair
        current_battle = _begin_battle(voter, task, drawn_pair)
    if number != _find_next_number(current_battle):
        raise StaleForm(
            _("The conversation continued in another window, so this message wasn't sent.")
        )
    if number > task.config.battles.turns:
        raise CapReached(_("This conversation has reached its maximum length. Please vote now."))
    # A failed turn keeps its row and number: turn_one_number allows no second one.
    turn, _created = Turn.objects.update_or_create(
        battle=current_battle,
        number=number,
        defaults={
            "key": key,
            "prompt": compose(prompt),
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
    check_battle_cap(voter, task)
    battle = Battle.objects.create(
        voter=voter,
        task=task,
        left_id=drawn_pair.left,
        right_id=drawn_pair.right,
        # Before any answer is shown, so that nothing that happens later can change the weight.
        chance=drawn_pair.chance,
        pair_count=drawn_pair.pair_count,
    )
    extra_sides = []
    for side, contestant_id in zip(EXTRA_SIDES, drawn_pair.others, strict=False):
        extra_sides.append(BattleSide(battle=battle, side=side, contestant_id=contestant_id))
    BattleSide.objects.bulk_create(extra_sides)
    return battle


def check_battle_cap(voter: Annotator, task: Task) -> None:
    """Raise CapReached if the person has begun the maximum number of battles today."""
    max_battles = task.config.battles.per_day
    if selectors.count_battles_begun_today(voter, task) >= max_battles:
        text = _(
            "You've started %(number)d conversations today, the daily maximum. You can start "
            "again after 00:00 UTC. Thank you!"
        )
        raise CapReached(text % {"number": max_battles})


def _find_next_number(battle: Battle) -> int:
    """Return the number of the next message.

    0 if no message may be sent: while the models are answering, and for a gold pair.
    """
    last_turn = battle.turns.last()
    # A gold pair has one message, which exists from the start.
    if battle.gold_id or (last_turn and last_turn.state == State.ASKING and not last_turn.is_lost):
        return 0
    if last_turn is None:
        return 1
    if last_turn.state == State.DONE:
        return last_turn.number + 1
    return last_turn.number  # a failed or lost turn is sent again


def ask_models(turn: Turn, seconds: float | None = None) -> Turn:
    """Ask the models, store their answers and return the turn as it is after the wait.

    seconds: the maximum wait; by default as long as a page waits. If the models take longer, a
    thread of the pool stores the answers later.
    """
    try:
        sides = _attach_writers(turn, [_build_side(turn, side) for side in turn.battle.sides])
        answers = submit_to_pool(sides, {}, settings.LIVE_DEADLINE_SECONDS)
    except EndpointError as error:
        return _fail_turn_after(turn, error)
    if wait_for_answers(answers, seconds):
        return _conclude_turn(turn, answers)
    asking_thread_id = threading.get_ident()

    def conclude(_done: object) -> None:
        try:
            _conclude_turn(turn, answers)
        except Exception:
            logger.exception("turn %s could not be stored", turn.pk)
            raise
        finally:
            # The callback runs in this thread if the answers arrived at once. A pool thread, which
            # does not end a request, must close its connection itself.
            if threading.get_ident() != asking_thread_id:
                connection.close()

    answers.add_done_callback(conclude)
    return turn


def _build_side(turn: Turn, side: str) -> LiveTarget:
    """Return one of the models with its side of the conversation. Raises EndpointError."""
    exchanges = []
    for earlier_turn in turn.battle.turns.all():
        if earlier_turn.number < turn.number:
            for reply in earlier_turn.replies.all():
                # Each model reads only its own answers, and none of the other model's.
                if reply.side == side:
                    exchanges.append((earlier_turn.prompt, reply.text))
    messages = build_messages(exchanges, turn.prompt)
    return replace(
        get_affordable_target(Payer(_find_target(turn.battle, side))), inputs={"messages": messages}
    )


def list_stream_keys(turn: Turn) -> list[str]:
    """Return the keys of all sides' partial answers, from left to right (`partial_answers`)."""
    return [f"battle:{turn.pk}:{side}:{turn.asked_at.timestamp()}" for side in turn.battle.sides]


def _attach_writers(turn: Turn, sides: Sequence[LiveTarget]) -> Sequence[LiveTarget]:
    """Attach stream writers to all sides, if all models can stream.

    If one of them can't, none streams, because that would tell them apart.
    """
    # Voters could recognise a side that streams beside one that appears at once.
    if not all(isinstance(side.endpoint, Writer) for side in sides):
        return sides
    pairs = zip(sides, list_stream_keys(turn), strict=True)
    return [replace(side, on_text=build_recorder(key)) for side, key in pairs]


def _find_target(battle: Battle, side: str) -> TargetModel:
    """Return the target of a side. Raises EndpointError if it was deleted."""
    target = battle.get_contestant(side).target
    if target is None:
        raise build_misconfigured_error("This model was deleted.")
    target.task = battle.task  # already loaded, which saves a query
    return target


def _conclude_turn(turn: Turn, answers: Answers) -> Turn:
    """Store the models' answers, or the reason for their failure, and return the updated turn."""
    # Calls count whether or not the answers are usable.
    record_spending([Payer(_find_target(turn.battle, side)) for side in turn.battle.sides], answers)
    if error := answers.exception():
        return _fail_turn_after(turn, error)
    try:
        texts = [_read_text(prediction) for prediction in answers.result()]
        finish_turn(turn=turn, predictions=answers.result(), answers=texts)
    except EndpointError as error:
        return _fail_turn_after(turn, error)
    except Exception:  # otherwise the voter would wait for a turn that is never stored
        fail_turn(turn=turn, reason="rubbish")
        raise
    return Turn.objects.select_related("battle").get(pk=turn.pk)


def _read_text(prediction: Prediction) -> str:
    """Return the text of a model's answer. Raises EndpointError if it cannot be shown."""
    text = next(iter(prediction.output.values()), None)
    if not isinstance(text, str):
        raise build_rubbish_error("The model's answer isn't text.")
    return compose(text).strip()


def _fail_turn_after(turn: Turn, error: BaseException) -> Turn:
    """Store that a turn failed, count the failure against its targets, and return the turn."""
    logger.warning("turn %s: %s", turn.pk, error)
    targets = [turn.battle.get_contestant(side).target for side in turn.battle.sides]
    record_target_failure(error, [target for target in targets if target])
    fail_turn(turn=turn, reason=get_failure_code(error))
    return Turn.objects.select_related("battle").get(pk=turn.pk)


def finish_turn(*, turn: Turn, predictions: Sequence[Prediction], answers: Sequence[str]) -> None:
    """Store all answers, from left to right, with the settings of their models. Locks the battle.

    Does nothing if the turn has already ended.
    """
    # Before the lock, because a new version needs a call to its target.
    replies = []
    sides = turn.battle.sides
    for side, prediction, text in zip(sides, predictions, answers, strict=True):
        target = _find_target(turn.battle, side)
        reply = Reply(
            turn=turn,
            side=side,
            text=text,
            version_id=get_version_id(target, prediction.fingerprint),
            setup=_describe_setup(target),
            seconds=prediction.seconds,
        )
        replies.append(reply)
    # Locked, so that the battle cannot end between the check and the replies.
    with transaction.atomic():
        locked = Battle.objects.select_for_update(of=("self",)).get(pk=turn.battle_id)
        if locked.ended_at is None and _end_turn(turn, State.DONE):
            Reply.objects.bulk_create(replies)


def _describe_setup(target: TargetModel) -> Mapping[str, Any]:
    """Return adapter, source, revision and options (prompt, sampling). They contain no secret."""
    # Stored with each answer, as owners may change their target later.
    return {name: getattr(target, name) for name in ("adapter", "source", "revision", "options")}


def fail_turn(*, turn: Turn, reason: str) -> None:
    """Mark a turn as failed, so that its message may be sent again. Takes no lock."""
    _end_turn(turn, State.FAILED, reason)


def _end_turn(turn: Turn, state: str, failure: str = "") -> bool:
    """End a turn by a conditional update; return False if it had already ended."""
    # On condition of `asked_at`, because a turn taken as lost may have been sent again.
    rows = Turn.objects.filter(pk=turn.pk, state=State.ASKING, asked_at=turn.asked_at)
    return bool(rows.update(state=state, failure=failure))
