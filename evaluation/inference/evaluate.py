"""One whole evaluation: examples out in an order by chance, answers in, scores. No database."""

import gzip
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import orjson

from dynabench.lib.words import gettext_noop
from evaluation.contract import (
    Answer,
    Beat,
    Ending,
    Evaluated,
    InvalidOutput,
    Outcome,
    SetRow,
    Take,
    Usage,
)
from evaluation.inference.answers import Answers
from evaluation.inference.requests import Sent, Tell, answers_for, labels_of, ticking
from evaluation.sandbox.logs import redacted
from evaluation.scoring.bootstrap import score
from evaluation.scoring.paraphrase import KIND as PARAPHRASE
from evaluation.scoring.paraphrase import Paraphrase, paraphrased
from evaluation.scoring.perturb import Family, Variant, variants
from evaluation.scoring.robustness import Twins, delta_numbers
from tasks.config.schema import TaskConfig

SCORING = gettext_noop("scoring")
ANSWERED = 0.95  # progress when only the scores are missing
MOST_BASES = 100_000  # examples of a set that are perturbed; a thousand take two seconds
T = TypeVar("T")

Ask = Callable[[Path, Take, Beat], Ending]
"""Has a model answer the lines of a file: `Runner.run` with model and limits settled."""


@dataclass(frozen=True)
class Question:
    """What a model is asked, and how its answers are scored."""

    config: TaskConfig
    rows: Callable[[], Iterable[SetRow]]  # the examples in order; the same at each call
    seed: int = 0
    sp_model: Path | None = None  # the SentencePiece file of sp_bleu
    paraphrase: Paraphrase | None = None  # what says texts in other words, for that suite


def evaluate(question: Question, ask: Ask, tell: Tell, folder: Path, runner: str) -> Evaluated:
    """Ask a model about a set as it is, and score it. `folder` takes files; the caller removes it.

    The model sees the fields of the task's models and nothing else: no answers, no uids, and the
    order of the set neither. Raises what `tell` raises.
    """
    sent = Sent(folder / "inputs.jsonl")
    sent.write((row.inputs for row in question.rows()), question.config.model_fields, tell)
    answers = answers_for(question.config, sent.ids())
    ending = _asked(ask, answers, sent, tell)
    return judged(question, answers, ending, tell, folder, runner)


def score_file(question: Question, lines: Iterable[bytes], tell: Tell, folder: Path) -> Evaluated:
    """Score answers that somebody wrote down, an example a line, whose ids are the set's uids."""
    began = time.monotonic()
    answers = answers_for(question.config, (row.uid for row in question.rows()))
    outcome, sentence = Outcome.OK, ""
    try:
        for line in ticking(lines, tell, gettext_noop("reading the predictions")):
            answers.take(line.rstrip(b"\n"))
    except InvalidOutput as error:
        outcome, sentence = Outcome.INVALID_OUTPUT, str(error)
    usage = Usage(seconds=time.monotonic() - began, answers=answers.answered)
    return judged(question, answers, Ending(outcome, usage, sentence), tell, folder, "file")


def evaluate_suite(
    question: Question,
    suite: str,
    plain: Callable[[], Iterable[Answer | None]],
    ask: Ask,
    tell: Tell,
    folder: Path,
    runner: str,
) -> Evaluated:
    """Ask a model about the perturbed twins of a set, and compare with its answers to the set.

    plain: those answers, in order; the same at each call. Otherwise as `evaluate`. Of a set with
    more than MOST_BASES examples some are taken, as far apart as makes so many.
    """
    message = gettext_noop("counting the examples")
    size = sum(1 for _ in ticking(question.rows(), tell, message))
    step = max(1, -(-size // MOST_BASES))
    question = replace(question, rows=partial(_each, question.rows, step))
    sent, twins = Sent(folder / "inputs.jsonl"), folder / "twins.jsonl"
    with twins.open("wb") as file:
        sent.write(_perturbed(question, suite, tell, file), question.config.model_fields, tell)
    answers = answers_for(question.config, sent.ids())
    ending = _completed(_asked(ask, answers, sent, tell), answers)
    if step > 1:
        warning = f"Of {size:,} examples one in {step} was perturbed."
        ending = replace(ending, warnings=(*ending.warnings, warning))
    if ending.outcome != Outcome.OK:
        return Evaluated(ending, runner)
    predictions = folder / "predictions.jsonl.gz"
    with gzip.open(predictions, "wb", compresslevel=6) as file, twins.open("rb") as lines:
        rows = ticking(question.rows(), tell, SCORING, ANSWERED)
        numbers = delta_numbers(
            _pairs(zip(rows, _each(plain, step), lines, strict=True), answers.in_order(), file),
            metric=question.config.metrics.main,
            labels=labels_of(question.config),
            seed=question.seed,
            sp_model=question.sp_model,
        )
    return Evaluated(ending, runner, numbers, predictions)


def _each(items: Callable[[], Iterable[T]], step: int) -> Iterator[T]:
    """The first item and each `step`th after it."""
    return islice(items(), 0, None, step)


def _perturbed(
    question: Question, suite: str, tell: Tell, file: IO[bytes]
) -> Iterator[Mapping[str, Any]]:
    """The inputs of each twin; what else is to be known of them is written down on the way."""
    for row in ticking(question.rows(), tell, gettext_noop("perturbing the examples")):
        found = _twins(question, suite, row)
        file.write(orjson.dumps([(twin.kind, twin.row.gold) for twin in found]) + b"\n")
        for twin in found:
            yield twin.row.inputs


def _twins(question: Question, suite: str, row: SetRow) -> Sequence[Variant]:
    """The twins of an example in a suite."""
    config = question.config
    answer = config.component(config.answer_field)
    passage = answer.reference if answer.type == "span" else None
    fields, labels = config.model_fields, labels_of(config) or ()
    if suite == PARAPHRASE:
        assert question.paraphrase
        twin = paraphrased(
            question.paraphrase,
            row,
            fields=fields,
            passage_field=passage,
            labels=labels,
            seed=question.seed,
        )
        return [twin] if twin else []
    return variants(
        row,
        family=cast(Family, suite),
        fields=fields,
        language=config.language,
        answer_field=config.answer_field,
        passage_field=passage,
        labels=labels,
        seed=question.seed,
        group_terms=config.metrics.group_terms,
    )


def _pairs(
    bases: Iterable[tuple[SetRow, Answer | None, bytes]],
    answers: Iterator[Answer | None],
    file: gzip.GzipFile,
) -> Iterator[Twins]:
    """Each example with its twins, in order; the answers are written down on their way."""
    for row, answer, line in bases:
        found = []
        for kind, gold in orjson.loads(line):
            said = next(answers)
            file.write(prediction_line(row.uid, said, kind=kind))
            found.append((kind, SetRow(row.uid, {}, tuple(gold), row.slices), said))
        yield Twins(row, answer, found)


def judged(
    question: Question, answers: Answers, ending: Ending, tell: Tell, folder: Path, runner: str
) -> Evaluated:
    """The scores of checked answers and the file of all predictions; if not ok, only the ending."""
    ending = _completed(ending, answers)
    if ending.outcome != Outcome.OK:
        return Evaluated(ending, runner)
    predictions = folder / "predictions.jsonl.gz"
    config = question.config
    rows = ticking(question.rows(), tell, SCORING, ANSWERED)
    with gzip.open(predictions, "wb", compresslevel=6) as file:
        numbers = score(
            kept(zip(rows, answers.in_order(), strict=True), file),
            metrics=(config.metrics.main, *config.metrics.also),
            labels=labels_of(config),
            slices=config.slices,
            seed=question.seed,
            sp_model=question.sp_model,
        )
    return Evaluated(ending, runner, numbers, predictions)


def _asked(ask: Ask, answers: Answers, sent: Sent, tell: Tell) -> Ending:
    """How the model's run ended, with what its log may show."""

    def beat() -> None:
        share = answers.answered / max(1, sent.size)
        tell(ANSWERED * share, f"{answers.answered:,} of {sent.size:,} answers")

    if not sent.size:
        return Ending(Outcome.OK, Usage(seconds=0.0))
    ending = ask(sent.path, answers.take, beat)
    return replace(ending, log=redacted(ending.log, texts=sent.texts()) if ending.log else "")


def _completed(ending: Ending, answers: Answers) -> Ending:
    """With the rule about missing answers, which is the same for everybody."""
    if ending.outcome != Outcome.OK:
        return ending
    try:
        warning = answers.end()
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return replace(ending, warnings=(*ending.warnings, warning)) if warning else ending


def kept(
    pairs: Iterable[tuple[SetRow, Answer | None]], file: gzip.GzipFile
) -> Iterator[tuple[SetRow, Answer | None]]:
    """The pairs as they come; each answer is written down on its way."""
    for row, answer in pairs:
        file.write(prediction_line(row.uid, answer))
        yield row, answer


def prediction_line(uid: str, answer: Answer | None, **more: str) -> bytes:
    """A line of a predictions file: `{"uid", "answer", "prob"}`; the answer null where missing."""
    value, prob = (answer.value, answer.prob) if answer else (None, None)
    return orjson.dumps({"uid": uid, **more, "answer": value, "prob": prob}) + b"\n"


def read_predictions(lines: Iterable[bytes]) -> Iterator[Answer | None]:
    """The answers in the lines of a predictions file, in the order of the set."""
    for line in lines:
        told = orjson.loads(line)
        yield None if told["answer"] is None else Answer(told["answer"], told["prob"])
