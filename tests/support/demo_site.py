"""A site in use: a round of the demo, an open one and a board; and the pages that people see."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from annotation.attempts.services import ask_targets, begin_attempt
from annotation.context_picking.services import assign_next
from annotation.models import Example, Report
from core.accounts.services import get_annotator
from evaluation.models import Submission
from leaderboard.board.services import store_first_models
from tasks.models import Round, TaskMember
from tests.support.boards import fill_board
from tests.support.demo import played_round
from tests.support.factories import ContextFactory, RoundFactory, UserFactory, scripted_target
from tests.support.judging import write

TASK = "/t/demo-simulated"
OWN = "/own/demo-simulated"
STRANGER = {"home": "/", "leaderboards": "/leaderboards/", "sign-in": "/accounts/login/"}
PERSON = {
    "styleguide": "/styleguide/",
    "task": f"{TASK}/",
    "write": f"{TASK}/write/",
    "judge": f"{TASK}/judge/",
    "result": "/attempt/{example}/",
    "board": f"{TASK}/leaderboard/",
    "data": f"{TASK}/data/",
    "people": f"{TASK}/people/",
    "model": "/m/{model}/",
    "my-work": "/me/",
    "account": "/account/",
}
OWNER = {
    "dashboard": f"{OWN}/?round=1",
    "own-rounds": f"{OWN}/rounds/",
    "review": f"{OWN}/review/",
    "reports": f"{OWN}/reports/",
    "own-people": f"{OWN}/annotators/",
}
PAGES = {"": STRANGER, "person@example.com": PERSON, "owner@example.com": OWNER}


def demo_site(now: datetime) -> dict[str, Any]:
    """Play it; the uuids that stand in the addresses of `PAGES`."""
    person = UserFactory(email="person@example.com")
    round = played_round(seed=3, tries=60)
    task = round.task
    TaskMember.objects.create(
        task=task, user=UserFactory(email="owner@example.com"), role=TaskMember.Role.OWNER
    )
    for number, example in enumerate(round.examples.order_by("pk")):
        sent = now - timedelta(days=number % 9, minutes=number)
        Example.objects.filter(pk=example.pk).update(created_at=sent, shown_at=sent)
    Report.objects.update(created_at=now)
    following = RoundFactory(task=task, number=2)
    context = {"prompt": "We were at the mill on Monday."}
    ContextFactory(round=following, fields=context, metadata={"place": "mill"})
    scripted_target(following, "scripted-2", label="neutral")
    Round.objects.filter(pk=following.pk).update(opened_at=now)
    write(following, UserFactory(), text="The mill is loud.", label="negative")
    me = get_annotator(person)
    assignment = assign_next(annotator=me, round=following, requested_kind="current")
    inputs = {"text": "Nobody ever slept in the mill.", "label": assignment.goal}
    mine, _ = begin_attempt(annotator=me, assignment=assignment, key=uuid4(), inputs=inputs)
    ask_targets(mine)
    fill_board(task, models=5)
    store_first_models(task=task)
    return {"example": mine.uuid, "model": Submission.objects.latest("queued_at").pk}
