"""Sets, submissions and a scripted runner for tests of evaluations."""

import json
from contextlib import nullcontext

from evaluation.contract import Ending, Outcome, SetRow, Usage
from evaluation.models import EvaluationRun, EvaluationSet, EvaluationSetVersion, Submission
from evaluation.runs import execute as executing
from evaluation.test_sets.services import make_version

LABELS = ("entailment", "neutral", "contradiction")


def nli_rows(size=6):
    """Examples whose right label is that of their number, in the order of LABELS."""
    return [
        SetRow(
            f"u{number}",
            {"premise": f"Person {number} opened the shop.", "hypothesis": f"Open {number}."},
            (LABELS[number % 3],),
            {"tag": ("even" if number % 2 == 0 else "odd",)},
        )
        for number in range(size)
    ]


def set_version(task, name="dev", size=6, rows=None, **fields) -> EvaluationSetVersion:
    """A version of a set of examples of NLI; the set is made if there is none. Not sealed."""
    fields = {"answers_public": True} | fields
    one, _ = EvaluationSet.objects.get_or_create(task=task, name=name, defaults=fields)
    return make_version(one, rows or nli_rows(size), None)


def accepted_model(task, owner=None, name="mine", kind="directory", **fields):
    """A submission whose check was passed."""
    return Submission.objects.create(
        task=task, owner=owner, name=name, kind=kind, state=Submission.State.DONE, **fields
    )


def queued_run(submission, version, suite="plain", **fields):
    """A run that waits; nothing rings for it."""
    return EvaluationRun.objects.create(
        submission=submission, version=version, suite=suite, **fields
    )


class ScriptedRunner:
    """Answers each line by a function of its inputs, in this process."""

    name = "scripted"

    def __init__(self, answer=lambda inputs: "neutral", ending=None):
        self.answer, self.ending, self.sent = answer, ending, []

    def run(self, model, inputs, limits, *, take, beat):
        lines = [json.loads(line) for line in inputs.read_text().splitlines()]
        self.sent.append(lines)
        for line in lines:
            beat()
            said = self.answer(line["inputs"])
            take(json.dumps({"id": line["id"], "output": {"label": said}, "prob": None}).encode())
        beat()
        usage = Usage(seconds=2.0, examples_per_second=3.0, cpu_seconds=1.5, answers=len(lines))
        return self.ending or Ending(Outcome.OK, usage)


def run_with(monkeypatch, runner) -> None:
    """Have every model be run with this runner; if it has a `trouble`, that is raised instead."""

    def open_model(submission, job, beat):
        if trouble := getattr(runner, "trouble", None):
            raise trouble
        return nullcontext((None, runner))

    monkeypatch.setattr(executing, "open_model", open_model)


def without_deltas(task, *but: str) -> None:
    """Make each evaluation one run instead of three, and one more for each of `but`."""
    text = task.config_text.replace("[fairness, robustness]", f"[{', '.join(but)}]")
    for name in {"fairness", "robustness"} - {*but}:
        text = text.replace(f", {name}: 1", "")
    task.config_text = text
    task.save(update_fields=["config_text"])
    assert task.config.metrics.deltas == but
