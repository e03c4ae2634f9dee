"""Score the answers of a submitter's own machine, and compare them with a second machine's."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import compress
from pathlib import Path

from evaluation.contract import (
    Answer,
    BeatCallback,
    Ending,
    EvaluationResult,
    InvalidOutput,
    LineCallback,
    Outcome,
    Runnable,
    Usage,
)
from evaluation.isolation.inference.elsewhere import read_lines
from evaluation.isolation.inference.evaluate import Attempt, Question, ask_model, score_answers
from evaluation.isolation.inference.exchange import (
    ITEMS_PER_REPORT,
    CollectedAnswers,
    ProgressCallback,
)
from evaluation.isolation.queue.attempt_keys import build_sent_examples, choose_tenth
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.uploads.chunked import assemble_upload, discard_upload
from evaluation.models import EvaluationRun, HandedAnswers, SecondOpinion

MIN_AGREEMENT = 0.99  # of the answers must be equal on a second machine; floats may differ
DISAGREEMENT_MESSAGE = (
    "A second machine gave other answers to {} of {} examples, so these do not count."
)


def find_handed_answers(run: EvaluationRun) -> Sequence[HandedAnswers]:
    """Return the answers submitted for a run by one machine, or by two, the first machine first."""
    return list(run.handed.select_related("upload").order_by("is_second"))


class OwnWorkerRunner:
    """A runner that passes on the answers of a model that ran on a submitter's own machine.

    The machine received the model, the examples and the limits when it leased the run. There,
    `evaluation.isolation.inference.leased` passed them to a runner.
    """

    def __init__(self, handed_answers: HandedAnswers) -> None:
        self._handed_answers = handed_answers
        self.name = f"own-{handed_answers.runner}"[:20]

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Pass on the machine's answers and return its ending. Raises UploadRefused."""
        report = (
            self._handed_answers.ending
        )  # as sent by the machine, checked by the API's serializer
        ending = Ending(Outcome(report["outcome"]), Usage(**report["usage"]), report["sentence"])
        if ending.outcome != Outcome.OK or not self._handed_answers.upload:
            return ending
        try:
            with assemble_upload(self._handed_answers.upload, beat) as path:
                for number, line in enumerate(read_lines(path)):
                    if number % ITEMS_PER_REPORT == 0:
                        beat()
                    take(line.rstrip(b"\n"))
        except InvalidOutput as error:
            return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
        return ending

    def build_attempt(self, size: int, report_progress: ProgressCallback, folder: Path) -> Attempt:
        """Return the machine's attempt at `size` examples."""
        # The ids that this machine got, computed again from its lease, without a file.
        sent_examples = build_sent_examples(
            self._handed_answers.lease_token, folder / "unused", size
        )
        return Attempt(Runnable(), self, Limits(), report_progress, folder, sent_examples)


def score_handed_answers(
    handed_answers: Sequence[HandedAnswers],
    question: Question,
    report_progress: ProgressCallback,
    folder: Path,
    open_second_attempt: Callable[[], AbstractContextManager[Attempt]],
) -> EvaluationResult:
    """Score the answers that the submitter's own machine sent for a run.

    open_second_attempt: provides the attempt that runs the model on this site if a second opinion
    is required. It is not called if a second machine has already answered a tenth of the examples.
    Raises UploadRefused and the exceptions of `report_progress` and `open_second_attempt`.
    """
    first_answers, runners = (
        handed_answers[0],
        [OwnWorkerRunner(machine_answers) for machine_answers in handed_answers],
    )
    size = sum(1 for _ in question.rows())
    answers, ending = ask_model(question, runners[0].build_attempt(size, report_progress, folder))
    evaluation = EvaluationResult(ending, runners[0].name)
    # A person's own machine can make up answers, so a second one repeats a tenth of them.
    if ending.outcome == Outcome.OK and first_answers.second != SecondOpinion.NOBODY:
        is_in_tenth = choose_tenth(first_answers.lease_token, size)
        tenth_question = replace(question, rows=lambda: compress(question.rows(), is_in_tenth))
        if len(runners) > 1:
            second_attempt: AbstractContextManager[Attempt]
            second_attempt = nullcontext(
                runners[1].build_attempt(sum(is_in_tenth), report_progress, folder)
            )
        else:
            second_attempt = open_second_attempt()
        with second_attempt as attempt:
            second_answers, second_ending = ask_model(tenth_question, attempt)
        evaluation = _compare_answers(
            evaluation,
            compress(answers.iterate_in_order(), is_in_tenth),
            second_answers,
            second_ending,
        )
    return score_answers(evaluation, question, answers, report_progress, folder)


def _compare_answers(
    evaluation: EvaluationResult,
    first_answers: Iterable[Answer | None],
    second_answers: CollectedAnswers,
    second_ending: Ending,
) -> EvaluationResult:
    """Return the evaluation with the number of answers that differ on the second machine.

    Too many differing answers end the run as INVALID_OUTPUT.
    """
    if second_ending.outcome != Outcome.OK:
        return replace(evaluation, ending=second_ending)
    pairs = list(zip(first_answers, second_answers.iterate_in_order(), strict=True))
    differing_count = sum((a and a.value) != (b and b.value) for a, b in pairs)
    ending = evaluation.ending
    if differing_count > (1 - MIN_AGREEMENT) * len(pairs):
        sentence = DISAGREEMENT_MESSAGE.format(differing_count, len(pairs))
        ending = replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=sentence)
    return replace(evaluation, ending=ending, compared=(len(pairs), differing_count))


def store_agreement(run: EvaluationRun, evaluation: EvaluationResult) -> None:
    """Store how far a second machine agreed, in the row of the first machine's answers.

    Does nothing if no second machine answered.
    """
    if evaluation.compared:
        compared, differed = evaluation.compared
        run.handed.filter(is_second=False).update(compared=compared, differed=differed)


def discard_handed_answers(run: EvaluationRun) -> None:
    """Delete the answer files of a run that is over; the records of their submission remain."""
    # `execute` may have queued the run again, for which the answers are still needed.
    run.refresh_from_db(fields=["state"])
    if run.is_over:
        for handed_answers in find_handed_answers(run):
            if upload := handed_answers.upload:
                # The row releases the file first, because deleting the upload would also delete it.
                run.handed.filter(pk=handed_answers.pk).update(upload=None)
                discard_upload(upload)
