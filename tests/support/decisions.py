"""Tasks in which people decide about cases with a key, with and without a model to talk to."""

import json

from tasks.models import Round, Task, TaskMember
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.writing import signed_in

CONFIG = {
    "version": 1,
    "name": "Triage",
    "instructions": "Read the case. Decide what the person should do.",
    "goal": {"text": "What should this person do?"},
    "context": [{"name": "case", "type": "long_text", "label": "Case"}],
    "input": [
        {"name": "talk", "type": "chat", "label": "Ask the model", "max_turns": 3},
        {
            "name": "advice",
            "type": "multiclass",
            "label": "What should they do?",
            "labels": ["ambulance", "doctor", "rest"],
        },
    ],
    "output": [{"name": "reply", "type": "long_text", "label": "The model's answer"}],
    "verdict": {"type": "decide", "fields": ["advice"]},
    "metrics": {"main": "exact_match"},
    "limits": {"tries_per_context": 1},
}
ALONE = CONFIG | {
    "input": CONFIG["input"][1:],
    "output": ["advice"],
    "metrics": {"main": "accuracy"},
}
SCRIPT = {
    "output": {"reply": "Call an ambulance."},
    "rules": [{"contains": "Break", "fail": "down"}],
}


def open_decisions(config=CONFIG, script=SCRIPT, code="triage", cases=2):
    """An open round of cases whose key is `doctor`, with a model if the task has a chat.

    Returns the round, and a client that is signed in.
    """
    owner = UserFactory()
    task = Task.objects.create(code=code, name=code, config_text=json.dumps(config, indent=1))
    TaskMember.objects.create(task=task, user=owner, role="owner")
    round = Round.objects.create(task=task, number=1, state="open")
    for number in range(cases):
        context = ContextFactory(round=round, fields={"case": f"Case {number}: a headache."})
        context.metadata = {"key": {"advice": "doctor"}}
        context.save()
    if task.config.talk:
        scripted_target(round, **script)
    return round, signed_in(UserFactory())
