"""Published battles that people voted on, and chat models that judge them."""

from django.utils import timezone

from core.accounts.models import Annotator
from leaderboard.models import Battle, Comparison, Contestant, Reply, Turn
from tasks.models import TargetModel, Task
from tests.support.battles import battle_arena

FIRST, SECOND = "<first_conversation>\n", "<second_conversation>\n"


def voted_arena(battles: int, *, voters: int = 12) -> Task:
    """An arena of two models. Even numbers are better: "Good 4." beats "Bad 4.", on either side.

    People vote for the good answer, but every seventh vote is for the bad one.
    """
    task = battle_arena("duel")
    good, bad = Contestant.objects.filter(task=task).order_by("pk")
    people = Annotator.objects.bulk_create(Annotator(pseudonym=f"v{n}") for n in range(voters))
    for number in range(battles):
        is_left = number % 2 == 0
        sides = (good, bad) if is_left else (bad, good)
        winner = "left" if is_left == (number % 7 != 0) else "right"
        store_battle(task, people[number % voters], sides, winner, number)
    return task


def store_battle(task, voter, sides, winner, number=0):
    """A published battle of one message with its vote, as `cast_vote` leaves it."""
    now = timezone.now()
    battle = Battle.objects.create(
        task=task, voter=voter, left=sides[0], right=sides[1], winner=winner, began_at=now,
        ended_at=now, release="released", consent_version=1,
    )  # fmt: skip
    turn = Turn.objects.create(
        battle=battle, number=1, key=battle.uuid, prompt=f"Question {number}", state="done",
        asked_at=now,
    )  # fmt: skip
    words = {"m1": "Good", "m2": "Bad"}
    for side, model in zip(("left", "right"), sides, strict=True):
        Reply.objects.create(turn=turn, side=side, text=f"{words[model.name]} {number}.")
    Comparison.objects.create(
        task=task, uid=str(battle.uuid), voter=voter, left=sides[0], right=sides[1], winner=winner
    )
    return battle


def judge_target(task: Task, url: str, **options: object) -> TargetModel:
    """A chat model of the arena that judges and answers in no battle."""
    options = {"model": "chat-1", "structured": "never", **options}
    return TargetModel.objects.create(
        task=task, name="judge", adapter="openai_chat", url=url, options=options
    )


def prefers_good(messages):
    """The choice of a judge that reads the answers."""
    first, _second = messages[1]["content"].split(SECOND)
    return "first" if "Good" in first.rpartition(FIRST)[2] else "second"
