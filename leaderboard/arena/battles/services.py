"""Writes of voters: consent, votes, the end of a conversation, and battles with gold pairs."""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from uuid import uuid4

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.open_round import check_may_work_now
from annotation.refusals import CapReached, NotAllowed, StaleForm
from core.accounts.models import Annotator
from leaderboard.arena.battles.breaking import list_pair_votes
from leaderboard.arena.battles.naming import is_self_named
from leaderboard.arena.battles.personal import find_personal_data
from leaderboard.arena.battles.selectors import (
    CONSENT_VERSION,
    choose_next_gold_pair,
    find_consent,
    find_open_battle,
)
from leaderboard.arena.battles.turn_services import check_battle_cap
from leaderboard.arena.battles.weights import compute_draw_weight
from leaderboard.arena.style import measure_style
from leaderboard.models import (
    RANKED,
    SIDES,
    Battle,
    Comparison,
    Contestant,
    ReleaseConsent,
    Reply,
    Turn,
)
from tasks.models import Task
from validation.judging.confirmed import check_votes_count
from validation.judging.pace import check_was_seen

Release = Battle.Release
VOTE_FIELDS = (
    *("winner", "ranking", "ended_at", "names_itself"),
    *("release", "consent_version", "personal"),
)
_random = random.SystemRandom()


@transaction.atomic
def give_consent(*, voter: Annotator, task: Task, agrees: bool) -> None:
    """Store whether the person's conversations may be published, from now on.

    Refusing also withdraws conversations that were published before. Takes no lock: the last answer
    wins.
    """
    ReleaseConsent.objects.update_or_create(
        voter=voter,
        task=task,
        defaults={"version": CONSENT_VERSION, "agrees": agrees, "given_at": timezone.now()},
    )
    if not agrees:
        battles = Battle.objects.filter(voter=voter, task=task)
        # In any state: without consent, none may be published later.
        battles.update(release=Release.PRIVATE, consent_version=None)


@transaction.atomic
def begin_gold_battle(*, voter: Annotator, task: Task) -> Battle | None:
    """Begin a battle with a gold pair, its good answer on a random side.

    None if another battle is open, no gold pair is due, or today's battles are used up. Locks the
    annotator, so that two tabs cannot begin two battles.
    """
    Annotator.objects.select_for_update(no_key=True).values_list("pk").get(pk=voter.pk)
    if find_open_battle(voter, task):  # checked again under the lock
        return None
    pair = choose_next_gold_pair(voter, task)
    if pair is None:
        return None
    try:
        check_battle_cap(voter, task)
    # Gold pairs count as battles of today; the page then says that today's are used up.
    except CapReached:
        return None
    good_side = _random.choice(SIDES)
    battle = Battle.objects.create(voter=voter, task=task, gold=pair, good=good_side)
    now = timezone.now()
    turn = Turn.objects.create(
        battle=battle,
        number=1,
        key=uuid4(),
        prompt=pair.prompt,
        state=Turn.State.DONE,
        asked_at=now,
    )
    Reply.objects.bulk_create(
        Reply(turn=turn, side=side, text=pair.good if side == good_side else pair.broken)
        for side in SIDES
    )
    return battle


@transaction.atomic
def cast_vote(
    *, battle: Battle, winner: str, turns: int, ranking: Mapping[str, int] | None = None
) -> Battle:
    """End a battle with a vote.

    It counts as a comparison, unless a model named itself or the battle has a gold pair. A ranking
    counts as a comparison of each pair.

    winner: one of Comparison.Winner, or RANKED. ranking: the place of each side, for RANKED.
    turns: the number of turns that the page showed.

    1. Check that the voter may vote, has not voted yet, and saw the latest turn.
    2. Check whether a model named itself, after which voters are no longer blind.
    3. Decide whether the conversation may be published.
    4. Store the comparison and the vote.

    Locks the battle, so that one vote counts and no message arrives at the same time.
    Raises NotAllowed, StaleForm, TooSoon.
    """
    locked_battle = _lock_battle(battle)
    check_may_work_now(locked_battle.voter, locked_battle.task)
    check_votes_count(locked_battle.voter, locked_battle.task)
    if locked_battle.winner:
        raise NotAllowed(_("You've already voted in this conversation."), code="voted")
    # More than two answers need a ranking of all of them, two need a winner.
    ranked_sides = locked_battle.sides if len(locked_battle.sides) > len(SIDES) else []
    if (winner == RANKED) != bool(ranked_sides) or set(ranking or ()) != set(ranked_sides):
        raise StaleForm(_("Reload the page, then rate all answers of this conversation."))
    finished_turns = [turn for turn in locked_battle.turns.all() if turn.state == Turn.State.DONE]
    is_waiting = False
    for turn in locked_battle.turns.all():
        if turn.state == Turn.State.ASKING and not turn.is_lost:
            is_waiting = True
    if locked_battle.ended_at or is_waiting or not finished_turns or len(finished_turns) != turns:
        raise StaleForm(_("The conversation has changed in another window. Check it, then vote."))
    # A vote that comes faster than the answers can be read is refused.
    check_was_seen(finished_turns[-1].answered_at)
    locked_battle.winner, locked_battle.ended_at = winner, timezone.now()
    locked_battle.ranking = ranking
    if locked_battle.gold_id is None:  # gold pairs only test the voter
        answers = _collect_answers(locked_battle.sides, finished_turns)
        for side in locked_battle.sides:
            if is_self_named(answers[side], _list_names(locked_battle.get_contestant(side))):
                locked_battle.names_itself = True
        prompts = [turn.prompt for turn in finished_turns]
        _prepare_release(locked_battle, chain(prompts, *answers.values()))
        # The voter was no longer blind, so the vote is stored but not compared.
        if not locked_battle.names_itself:
            _store_comparisons(locked_battle, answers)
    locked_battle.save(update_fields=VOTE_FIELDS)
    return locked_battle


def _lock_battle(battle: Battle) -> Battle:
    """Lock a battle and return it with the related rows that a vote needs."""
    # `of`: gold battles have no models, and PostgreSQL cannot lock the empty side of a join.
    rows = Battle.objects.select_for_update(of=("self",)).prefetch_related(
        "turns__replies", "extra_sides__contestant__target"
    )
    locked = rows.select_related("left__target", "right__target", "voter__user").get(pk=battle.pk)
    locked.task = battle.task  # with its parsed configuration
    return locked


def _collect_answers(sides: Sequence[str], turns: Sequence[Turn]) -> dict[str, list[str]]:
    """Return the answers by side."""
    answers: dict[str, list[str]] = {side: [] for side in sides}
    for turn in turns:
        for reply in turn.replies.all():
            answers[reply.side].append(reply.text)
    return answers


def _list_names(contestant: Contestant) -> list[str]:
    """Return the names that a model may use for itself."""
    names, target = [contestant.name], contestant.target
    if target:
        for name in (target.options.get("model"), target.source):
            if isinstance(name, str):
                names.append(name.rpartition("/")[2])  # without the owner: `org/name`
    return names


def _prepare_release(battle: Battle, texts: Iterable[str]) -> None:
    """Set the conversation's publication state; possible personal data makes it pending."""
    # The voter decides; without a decision, nothing is published.
    consent = find_consent(battle.voter, battle.task)
    if consent is None or not consent.agrees:
        return
    battle.consent_version, battle.personal = consent.version, find_personal_data(texts)
    battle.release = Release.WAITING if battle.personal else Release.RELEASED


def _store_comparisons(battle: Battle, answers: Mapping[str, Sequence[str]]) -> None:
    """Store a vote as a comparison, or as one for each pair, with the style of both answers."""
    styles = {side: measure_style(texts) for side, texts in answers.items()}
    draw_weight = compute_draw_weight(battle.chance, battle.pair_count)
    rows = []
    for vote in list_pair_votes(battle.winner, battle.ranking):
        left_style, right_style = styles[vote.first], styles[vote.second]
        # The id of the battle alone where it has one comparison, as it always was.
        suffix = f":{vote.pair}" if battle.ranking else ""
        row = Comparison(
            task=battle.task,
            uid=f"{battle.uuid}{suffix}",
            voter=battle.voter,
            left=battle.get_contestant(vote.first),
            right=battle.get_contestant(vote.second),
            winner=vote.winner,
            weight=vote.weight,
            draw_weight=draw_weight,
            style={name: [left_style[name], right_style[name]] for name in left_style},
        )
        rows.append(row)
    Comparison.objects.bulk_create(rows)


@transaction.atomic
def leave_battle(*, battle: Battle) -> None:
    """End a battle without a vote; it counts toward the daily cap. Locks the battle."""
    locked_battle = _lock_battle(battle)
    # A battle that ended with a vote keeps the time of the vote.
    if locked_battle.ended_at is None:
        locked_battle.ended_at = timezone.now()
        locked_battle.save(update_fields=["ended_at"])


@transaction.atomic
def erase_conversations(*, voter: Annotator) -> None:
    """Delete the messages, answers and consents of a person who left; keep their votes.

    Deletes turns that are still being answered too, so their answers are never stored. Locks the
    battles.
    """
    battles = Battle.objects.filter(voter=voter)
    # Evaluated only to take the locks, in a fixed order so that requests cannot deadlock.
    list(battles.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))
    Turn.objects.filter(battle__voter=voter).delete()
    battles.update(release=Release.PRIVATE, consent_version=None, personal=[])
    # Ended, so that late answers find no open battle.
    battles.filter(ended_at__isnull=True).update(ended_at=timezone.now())
    ReleaseConsent.objects.filter(voter=voter).delete()
