"""A language model that is not there: what its harness would write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation.contract import Ending, Outcome, Runnable
from evaluation.isolation.sandbox.limits import Limits


class Said:
    """A runner whose model says these texts, one an example by its number. asked: its messages."""

    name = "process"

    def __init__(self, text: Callable[[int], str]) -> None:
        self._text = text
        self.asked: list[Any] = []
        self.models: list[Runnable] = []

    def run(self, model: Runnable, inputs: Path, limits: Limits, *, take: Any, beat: Any) -> Ending:
        rows = [json.loads(line) for line in inputs.read_bytes().splitlines()]
        self.asked += [row["messages"] for row in rows]
        self.models.append(model)
        for n, row in enumerate(rows):
            told = {"text": self._text(n), "finish": "stop", "tokens": [9, 2], "logprob": -0.5}
            take(json.dumps({"id": row["id"]} | told).encode())
        return Ending(Outcome.OK, log="loaded")
