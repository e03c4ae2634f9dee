"""Boards with every column, whose numbers come from real runs of scripted models."""

import json

from evaluation.contract import Ending, Outcome, SetRow
from evaluation.isolation.sandbox.usage import ResourceSample, RunMeasurements
from evaluation.models import Dataset
from leaderboard.snapshots.services import take_snapshot
from tasks.models import Round
from tests.support.evaluations import LABELS, accepted_model, queued_run, run_with, set_version
from tests.support.factories import TaskFactory
from tests.support.submissions import work_off

PEOPLE = ("Her brother", "The old man", "A nurse", "Mary and her son", "His daughter")


class MeasuredRunner:
    """Answers by a function of the inputs, and measures itself by a clock of its own."""

    name = "scripted"

    def __init__(self, answer, field, speed):
        self.answer, self.field, self.speed = answer, field, speed

    def run(self, model, inputs, limits, *, take, beat):
        measurements, now = RunMeasurements(started_at=0.0), 1.0
        for number, line in enumerate(map(json.loads, inputs.read_text().splitlines())):
            output = {self.field: self.answer(line["inputs"])}
            take(json.dumps({"id": line["id"], "output": output, "prob": None}).encode())
            now += self.speed * (1 + number % 3)
            measurements.record_sample(ResourceSample(now, 2**30 + number * 1000), now)
            measurements.record_answers(1, now)
        measurements.single_seconds = [self.speed * (1 + number % 7) for number in range(40)]
        usage, _ = measurements.compute_usage(now + 1, is_trusted=True)
        return Ending(Outcome.OK, usage)


def nli_board(monkeypatch, size=60):
    """A snapshot of two models of NLI with all columns; returns the version of the set."""
    rows = [
        SetRow(
            f"u{number}",
            {
                "premise": f"{PEOPLE[number % 5]} didn't open shop {number}, which is big.",
                "hypothesis": f"{PEOPLE[number % 4]} was there.",
            },
            (LABELS[number % 3],),
            {"tag": (f"t{number % 4}",)},
        )
        for number in range(size)
    ]

    def answer(inputs, skill):
        text = inputs["premise"] + inputs["hypothesis"]
        # Other letters give another answer to some of the texts, as with a real model.
        number = int("".join(filter(str.isdigit, inputs["premise"])) or 0)
        return LABELS[(number + (sum(map(ord, text)) % skill == 0)) % 3]

    return _run_board(TaskFactory(code="nli"), rows, answer, "label", monkeypatch)


def qa_board(monkeypatch, size=60):
    """The same of question answering, whose answers are marked in a passage."""
    rows = []
    for number in range(size):
        passage = f"{PEOPLE[number % 5]} didn't see {number} red birds, and later left for Bern."
        text = f"{number} red birds" if number % 2 else "Bern"
        gold = {"text": text, "start": passage.index(text)}
        gold["end"] = gold["start"] + len(text)
        question = "What did she not see?" if number % 2 else "Where did she go?"
        inputs = {"passage": passage, "question": question}
        rows.append(SetRow(f"u{number}", inputs, (gold,), {}))

    def answer(inputs, skill):
        words, place = inputs["passage"].split(" "), sum(map(ord, inputs["passage"]))
        first = len(words) - 1 if place % skill else place % (len(words) - 2)
        return " ".join(words[first : first + 3]).rstrip(".")

    return _run_board(TaskFactory(code="qa"), rows, answer, "answer", monkeypatch)


def _run_board(task, rows, answer, field, monkeypatch):
    round = Round.objects.create(task=task, number=1, state="released")
    version = set_version(task, "round-1", rows=rows, may_leave=True)
    version.dataset = Dataset.objects.create(round=round, version=1, state="done", options={})
    version.save()
    for name, skill in (("first", 3), ("second", 5)):
        model = accepted_model(task, name=name, is_published=True)
        answer_well = lambda inputs, skill=skill: answer(inputs, skill)  # noqa: E731
        run_with(monkeypatch, MeasuredRunner(answer_well, field, 0.01 * skill))
        queued_run(model, version, seed=7)
        work_off()
        for suite in task.config.metrics.deltas:
            queued_run(model, version, suite, seed=7)
        work_off()
    take_snapshot(task=task, actor=None)
    return version
