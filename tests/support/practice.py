"""A container engine that answers by a script, for models that people try."""

import json
import time
from contextlib import nullcontext
from pathlib import Path

from evaluation.contract import Ending, Outcome, Runnable
from evaluation.submissions.practice import serve

NEUTRAL = {"output": {"label": "neutral"}, "prob": None}


class Engine:
    """A container that says of each line what the test says, and ends where asked to."""

    def __init__(self, says=NEUTRAL, ending=None):
        self.says, self.ending, self.lines = says, ending, []
        self.more, self.pause = None, 0.0

    def __call__(self, model, run, more=None):
        self.more = more
        return self

    def run(self, model, inputs, limits, *, take, beat):
        beat()
        while not self.ending:
            line = self.more() if self.more else inputs.read_bytes()
            if line:
                self.lines.append(line)
                take(answer_to(line, self.says))
            if not self.more:
                return Ending(Outcome.OK)
            beat()
            time.sleep(0 if line else self.pause)
        return self.ending


def answer_to(line, says):
    return json.dumps({"id": json.loads(line)["id"], **says}).encode()


def scripted_engine(monkeypatch) -> Engine:
    """Every model is a folder that such an engine runs."""
    engine = Engine()
    monkeypatch.setattr(serve, "has_engine", lambda: True)
    monkeypatch.setattr(
        serve, "fetch_model", lambda *_: nullcontext(Runnable(folder=Path("model")))
    )
    monkeypatch.setattr(serve, "choose_practice_sandbox", engine)
    return engine
