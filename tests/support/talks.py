"""A task of conversations, and the release of a round."""

import json

from evaluation.jobs import build_dataset
from evaluation.releases.build import Options
from evaluation.releases.services import request_release
from tasks.models import Round

CONFIG = {
    "version": 1,
    "name": "Talks",
    "instructions": "Talk.",
    "goal": {"text": "Make the model contradict the passage"},
    "context": [{"name": "passage", "type": "long_text", "label": "Passage"}],
    "input": [
        {"name": "talk", "type": "chat", "label": "Which answer failed?", "max_turns": 3},
        {"name": "how", "type": "multiclass", "label": "How?", "labels": ["wrong", "rude"]},
    ],
    "output": [{"name": "reply", "type": "long_text", "label": "The model's answer"}],
    "verdict": {"type": "ask_user"},
    "metrics": {"main": "exact_match"},
    "validation": {"votes": {"needed": 1}, "judge_not_fooled": 1},
}


def released(round):
    """The one row and the card of a release of the round."""
    Round.objects.update(state="closed")
    round.refresh_from_db()
    dataset = request_release(round=round, options=Options(dev=0, test=0), actor=None)
    build_dataset(dataset.pk)
    with dataset.files.get(name="train.jsonl").file.open() as file:
        row = json.loads(file.read())
    with dataset.files.get(name="README.md").file.open() as file:
        return row, file.read().decode()
