"""The carrier of runs on somebody's own machine, and the second opinion about its answers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import compress
from pathlib import Path

from evaluation.contract import (
    Answer,
    Beat,
    Ending,
    Evaluated,
    InvalidOutput,
    Outcome,
    Runnable,
    Take,
    Usage,
)
from evaluation.isolation.inference.elsewhere import read_lines
from evaluation.isolation.inference.evaluate import Attempt, Question, ask_model, score_answers
from evaluation.isolation.inference.exchange import ITEMS_PER_REPORT, CollectedAnswers, Tell
from evaluation.isolation.queue.attempt_keys import choose_tenth, sent_examples_of
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.uploads.chunked import assemble, discard
from evaluation.models import EvaluationRun, HandedAnswers, Second

LEAST_AGREEMENT = 0.99  # of the answers that a second machine must give as well: floats may differ
DISAGREEMENT = "A second machine gave other answers to {} of {} examples, so these do not count."


def find_handed_answers(run: EvaluationRun) -> Sequence[HandedAnswers]:
    """Return the answers submitted for a run by one machine, or by two, the first machine first."""
    return list(run.handed.select_related("upload").order_by("is_second"))


class OwnWorkerRunner:
    """A runner that passes on the answers of a model that ran on a submitter's own machine.

    The machine got the model, the examples and the limits when it leased the run, and
    `evaluation.isolation.inference.leased` gave them to a runner there.
    """

    def __init__(self, handed_answers: HandedAnswers) -> None:
        self._handed = handed_answers
        self.name = f"own-{handed_answers.runner}"[:20]

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `Runner`. Raises UploadRefused."""
        report = self._handed.ending  # as the machine sent it, checked by the API's serializer
        ending = Ending(Outcome(report["outcome"]), Usage(**report["usage"]), report["sentence"])
        if ending.outcome != Outcome.OK or not self._handed.upload:
            return ending
        try:
            with assemble(self._handed.upload, beat) as path:
                for number, line in enumerate(read_lines(path)):
                    if number % ITEMS_PER_REPORT == 0:
                        beat()
                    take(line.rstrip(b"\n"))
        except InvalidOutput as error:
            return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
        return ending

    def attempt(self, size: int, tell: Tell, folder: Path) -> Attempt:
        """Return the machine's attempt at `size` examples."""
        # The ids that this machine got, made again from its lease: no file of them was kept.
        sent = sent_examples_of(self._handed.lease_token, folder / "unused", size)
        return Attempt(Runnable(), self, Limits(), tell, folder, sent)


def score_handed(
    handed_answers: Sequence[HandedAnswers],
    question: Question,
    tell: Tell,
    folder: Path,
    second: Callable[[], AbstractContextManager[Attempt]],
) -> Evaluated:
    """Score the answers that the submitter's own machine sent for a run.

    second: provides the attempt that runs the model on this site if a second opinion is required.
    It is not called if a second machine has already answered the tenth of the examples.
    Raises UploadRefused and the exceptions of `tell` and `second`.
    """
    first_answers, runners = handed_answers[0], [OwnWorkerRunner(each) for each in handed_answers]
    size = sum(1 for _ in question.rows())
    answers, ending = ask_model(question, runners[0].attempt(size, tell, folder))
    evaluation = Evaluated(ending, runners[0].name)
    # Somebody's own machine can make up answers, so a second one repeats a tenth of them.
    if ending.outcome == Outcome.OK and first_answers.second != Second.NOBODY:
        is_chosen = choose_tenth(first_answers.lease_token, size)
        tenth = replace(question, rows=lambda: compress(question.rows(), is_chosen))
        if len(runners) > 1:
            second_attempt: AbstractContextManager[Attempt]
            second_attempt = nullcontext(runners[1].attempt(sum(is_chosen), tell, folder))
        else:
            second_attempt = second()
        with second_attempt as attempt:
            second_answers, second_ending = ask_model(tenth, attempt)
        evaluation = _compare_answers(
            evaluation, compress(answers.in_order(), is_chosen), second_answers, second_ending
        )
    return score_answers(evaluation, question, answers, tell, folder)


def _compare_answers(
    evaluation: Evaluated,
    first_answers: Iterable[Answer | None],
    second_answers: CollectedAnswers,
    second_ending: Ending,
) -> Evaluated:
    """Return the evaluation with the number of answers that differ on the second machine.

    Too many differing answers end the run as INVALID_OUTPUT.
    """
    if second_ending.outcome != Outcome.OK:
        return replace(evaluation, ending=second_ending)
    pairs = list(zip(first_answers, second_answers.in_order(), strict=True))
    differing_count = sum((a and a.value) != (b and b.value) for a, b in pairs)
    ending = evaluation.ending
    if differing_count > (1 - LEAST_AGREEMENT) * len(pairs):
        sentence = DISAGREEMENT.format(differing_count, len(pairs))
        ending = replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=sentence)
    return replace(evaluation, ending=ending, compared=(len(pairs), differing_count))


def store_agreement(run: EvaluationRun, evaluation: Evaluated) -> None:
    """Store how far a second machine agreed, in the row of the first machine's answers."""
    if evaluation.compared:
        compared, differed = evaluation.compared
        run.handed.filter(is_second=False).update(compared=compared, differed=differed)


def discard_handed(run: EvaluationRun) -> None:
    """Delete the answer files of a run that is over; the records of their submission remain."""
    # `execute` may have queued the run again, for which the answers are still needed.
    run.refresh_from_db(fields=["state"])
    if run.is_over:
        for handed_answers in find_handed_answers(run):
            if upload := handed_answers.upload:
                # The row lets go of the file first, or deleting the upload would take it along.
                run.handed.filter(pk=handed_answers.pk).update(upload=None)
                discard(upload)
