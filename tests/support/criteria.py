"""A task whose authors write criteria, which they and judges check against the model's answer."""

import json

from annotation.models import Assignment, Example
from core.accounts.models import User
from tasks.models import Round, Task, TaskMember
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.writing import ok, signed_in

KEY = "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10"
REPLY = "Take two tablets and rest."
LINES = "Names a dose = 3\nSends them to a doctor = 2\nRecommends an antibiotic = -5"
CRITERIA = [
    {"text": "Names a dose", "points": 3},
    {"text": "Sends them to a doctor", "points": 2},
    {"text": "Recommends an antibiotic", "points": -5},
]
FIELD = {"name": "checks", "type": "criteria", "label": "Your criteria", "points": True}
CONFIG = {
    "version": 1,
    "name": "Advice",
    "instructions": "Ask for advice.",
    "goal": {"text": "Ask a question that the model answers badly"},
    "context": [{"name": "topic", "type": "text", "label": "Topic"}],
    "input": [{"name": "question", "type": "long_text", "label": "Your question"}, FIELD],
    "output": [{"name": "reply", "type": "long_text", "label": "The model's answer"}],
    "verdict": {"type": "criteria", "field": "checks", "threshold": 0.6},
    "metrics": {"main": "rouge_l"},
    "validation": {"votes": {"needed": 2}, "corrections": True},
}


def build_text(**changes):
    """The configuration with other sections."""
    return json.dumps(CONFIG | changes, indent=1)


def open_task(text=None, *, code="advice", reply=REPLY):
    """An open round of the task with one model, and its owner."""
    owner = User.objects.filter(email="owner@example.com").first()
    owner = owner or UserFactory(email="owner@example.com")
    task = Task.objects.create(code=code, name="Advice", config_text=text or build_text())
    TaskMember.objects.create(task=task, user=owner, role="owner")
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"topic": "A cold."})
    scripted_target(round, output={"reply": reply})
    return round, owner


def write(client, text="What helps against a cold?", lines=LINES, code="advice"):
    """The example that a person writes on the page, without JavaScript."""
    ok(client.get(f"/t/{code}/write/"))
    assignment = Assignment.objects.filter(left_at=None, round__task__code=code).latest("pk")
    count = Example.objects.count()
    sent = {"assignment": assignment.pk, "goal": "", "question": text, "checks": lines}
    key = f"{KEY[:-3]}{count:03}"
    page = client.post(f"/t/{code}/write/", sent | {"attempt_key": key}, follow=True)
    return ok(page)


def number(*judgements):
    """What a form sends about the criteria."""
    return {f"criterion-{place}": word for place, word in enumerate(judgements, 1)}


def judge(client, example, *judgements, code="advice"):
    """One person's vote on the page."""
    ok(client.get(f"/t/{code}/judge/"))
    sent = {"example": example.uuid, **number(*judgements)}
    return client.post(f"/t/{code}/judge/", sent, follow=True)


__all__ = ["signed_in"]
