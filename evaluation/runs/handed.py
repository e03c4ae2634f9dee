"""Answers that somebody's own machine handed in: read, checked against a second one, and scored."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

from evaluation.contract import Ending, Evaluated, Outcome, Usage
from evaluation.inference.evaluate import Attempt, Question, asked, scored, taken
from evaluation.inference.exchange import Answers, Tell, answers_for
from evaluation.models import EvaluationRun, HandedAnswers
from evaluation.queue.attempt_keys import sent_to
from evaluation.uploads.chunked import assemble, discard

TENTH = 10
AGREES = 0.99  # of the answers that a second machine must give as well: floats may differ
DISAGREES = "A second machine gave other answers to {} of {} examples, so these do not count."


def score_handed(
    handed: HandedAnswers,
    question: Question,
    tell: Tell,
    folder: Path,
    second: Callable[[], AbstractContextManager[Attempt]],
) -> Evaluated:
    """The scores of what was handed in. second: what asks the model here, where that is required.

    Raises UploadRefused, and what `tell` and `second` raise.
    """
    told = handed.ending
    ending = Ending(Outcome(told["outcome"]), Usage(**told["usage"]), told["sentence"])
    size = sum(1 for _ in question.rows())
    sent = sent_to(handed.lease_token, folder / "unused", size)
    answers = answers_for(question.config, sent.ids())
    if ending.outcome == Outcome.OK:
        with assemble(handed.upload, partial(tell, 0, "")) as path, path.open("rb") as lines:
            ending = taken(answers, lines, ending, tell)
    if ending.outcome == Outcome.OK and handed.needs_second:
        ending = _compared(ending, answers, question, second)
    found = Evaluated(ending, f"own-{handed.runner}"[:20])
    return scored(found, question, answers, tell, folder)


def _compared(
    ending: Ending,
    answers: Answers,
    question: Question,
    second: Callable[[], AbstractContextManager[Attempt]],
) -> Ending:
    """The ending, or another one where a random tenth of the answers are not the model's here."""
    known = [*answers.in_order()]
    tenth = -(-len(known) // TENTH)
    drawn = {*secrets.SystemRandom().sample(range(len(known)), tenth)}
    chosen = [place in drawn for place in range(len(known))]

    def rows() -> Any:
        return compress(question.rows(), chosen)

    with second() as attempt:
        again, ended = asked(replace(question, rows=rows), attempt)
    if ended.outcome != Outcome.OK:
        return ended
    pairs = [*zip(compress(known, chosen), again.in_order(), strict=True)]
    differ = sum((a and a.value) != (b and b.value) for a, b in pairs)
    if differ > (1 - AGREES) * len(pairs):
        sentence = DISAGREES.format(differ, len(pairs))
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=sentence)
    return ending


def discard_handed(run: EvaluationRun) -> None:
    """Throw away what was handed in to a run that is over now."""
    run.refresh_from_db(fields=["state"])
    if run.is_over:
        for handed in HandedAnswers.objects.filter(run=run).select_related("upload"):
            discard(handed.upload)
