"""One whole evaluation: examples out in random order, answers in, scores. No database."""

import gzip
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import orjson

from core.text.words import gettext_noop
from evaluation.contract import (
    MOST_BASES,
    Answer,
    Ending,
    Evaluated,
    InvalidOutput,
    Outcome,
    Runnable,
    SetRow,
    Usage,
)
from evaluation.isolation.inference.exchange import Answers, Sent, Tell, answers_for, ticking
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.logs import redacted
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.scoring.bootstrap import score
from evaluation.scoring.exchanged import LabelCounts
from evaluation.scoring.groups import group_numbers, groups_of, share_of
from evaluation.scoring.paraphrase import KIND as PARAPHRASE
from evaluation.scoring.paraphrase import Paraphrase, paraphrased, reworded
from evaluation.scoring.perturb import Family, Reading, Variant, variants
from evaluation.scoring.robustness import Perturbed, delta_numbers
from evaluation.task_shape import labels_of
from tasks.config.schema import TaskConfig

SCORING = gettext_noop("scoring")
ANSWERED = 0.95  # progress when only the scores are missing
T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """What a model is asked, and how its answers are scored."""

    config: TaskConfig
    rows: Callable[[], Iterable[SetRow]]  # the examples in order; the same at each call
    seed: int = 0
    sp_model: Path | None = None  # the SentencePiece file of sp_bleu
    paraphrase: Paraphrase | None = None  # says texts in other words, for that suite
    checked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # see `checked_of`
    read: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict  # inputs, files in their place


@dataclass(frozen=True)
class Attempt:
    """What answers, and within which limits. `folder` takes files; the caller removes it."""

    model: Runnable
    runner: Runner
    limits: Limits
    tell: Tell
    folder: Path

    def run(self, sent: Sent, answers: Answers) -> Ending:
        """Run the model and return how it ended, with the rule about missing answers applied.

        The log is redacted: it repeats none of the texts that the model was sent.
        """

        def beat() -> None:
            share = answers.answered / max(1, sent.size)
            self.tell(ANSWERED * share, f"{answers.answered:,} of {sent.size:,} answers")

        if not sent.size:
            return Ending(Outcome.OK)
        take = answers.take
        ending = self.runner.run(self.model, sent.path, self.limits, take=take, beat=beat)
        if ending.log:
            ending = replace(ending, log=redacted(ending.log, texts=sent.texts()))
        return _completed(ending, answers)


def evaluate(question: Question, attempt: Attempt) -> Evaluated:
    """Ask a model about a set as it is, and score its answers.

    The model sees the fields of the task's models and nothing else: no right answers, no uids, and
    not the order of the set. Raises what `attempt.tell` raises.
    """
    answers, ending = asked(question, attempt)
    found = Evaluated(ending, attempt.runner.name)
    return scored(found, question, answers, attempt.tell, attempt.folder)


def asked(question: Question, attempt: Attempt) -> tuple[Answers, Ending]:
    """Return a model's answers to a set and how its run ended, without scoring them."""
    sent = Sent(attempt.folder / "inputs.jsonl")
    rows = (question.read(row.inputs) for row in question.rows())
    sent.write(rows, question.config.model_fields, attempt.tell)
    answers = answers_for(question.config, sent.ids())
    return answers, attempt.run(sent, answers)


def score_file(question: Question, lines: Iterable[bytes], tell: Tell, folder: Path) -> Evaluated:
    """Score answers in a file, an example a line, whose ids are the set's uids."""
    began = time.monotonic()
    answers = answers_for(question.config, (row.uid for row in question.rows()))
    ending = taken(answers, lines, Ending(Outcome.OK), tell)
    unanswered = dict(answers.unanswered) or None
    seconds = time.monotonic() - began
    usage = Usage(seconds, answers=answers.answered, unanswered=unanswered)
    found = Evaluated(replace(ending, usage=usage), "file")
    return scored(found, question, answers, tell, folder)


def taken(answers: Answers, lines: Iterable[bytes], ending: Ending, tell: Tell) -> Ending:
    """Read lines of answers, and return the ending with what they change in it."""
    try:
        for line in ticking(lines, tell, gettext_noop("reading the predictions")):
            answers.take(line.rstrip(b"\n"))
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return _completed(ending, answers)


def _completed(ending: Ending, answers: Answers) -> Ending:
    """Apply the rule about missing answers, which is the same for every model."""
    if answers.unanswered:
        usage = replace(ending.usage, unanswered=dict(answers.unanswered))
        ending = replace(ending, usage=usage)
    if ending.outcome != Outcome.OK:
        return ending
    try:
        warning = answers.end()
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return replace(ending, warnings=(*ending.warnings, warning)) if warning else ending


def scored(
    found: Evaluated, question: Question, answers: Answers, tell: Tell, folder: Path
) -> Evaluated:
    """Add the scores and the file of all predictions, if the run ended well."""
    if found.ending.outcome != Outcome.OK:
        return found
    predictions = folder / "predictions.jsonl.gz"
    config = question.config
    groups, metrics = groups_of(config), config.metrics.computed
    counts = LabelCounts(labels_of(config) or ())
    rows = map(groups.named, ticking(question.rows(), tell, SCORING, ANSWERED))
    with gzip.open(predictions, "wb", compresslevel=6) as file:
        numbers = score(
            _kept(zip(rows, answers.in_order(), strict=True), file, counts),
            metrics=metrics,
            labels=labels_of(config),
            slices=[*dict.fromkeys((*config.slices, *groups.fields))],
            seed=question.seed,
            sp_model=question.sp_model,
            language=config.language,
        )
    numbers += group_numbers(numbers, groups, share_of(metrics))
    exchanged = counts.exchanged()
    return replace(found, numbers=numbers, predictions=predictions, exchanged=exchanged)


def _kept(
    pairs: Iterable[tuple[SetRow, Answer | None]], file: gzip.GzipFile, counts: LabelCounts
) -> Iterator[tuple[SetRow, Answer | None]]:
    """Yield the pairs unchanged, after writing down and counting each answer."""
    for row, answer in pairs:
        file.write(prediction_line(row.uid, answer))
        if answer is not None and isinstance(answer.value, str):
            counts.add(row.gold, answer.value)
        yield row, answer


def evaluate_suite(
    question: Question,
    suite: str,
    plain: Callable[[], Iterable[Answer | None]],
    attempt: Attempt,
) -> Evaluated:
    """Ask a model about perturbed variants of a set, and compare with its answers to the set.

    plain: those answers, in order; the same at each call. Otherwise as `evaluate`. Of a set with
    more than MOST_BASES examples some are taken, as far apart as makes so many.
    """
    tell, folder = attempt.tell, attempt.folder
    message = gettext_noop("counting the examples")
    size = sum(1 for _ in ticking(question.rows(), tell, message))
    step = max(1, -(-size // MOST_BASES))
    question = replace(question, rows=partial(_each, question.rows, step))
    sent, made = Sent(folder / "inputs.jsonl"), folder / "variants.jsonl"
    with made.open("wb") as file:
        sent.write(_perturbed(question, suite, tell, file), question.config.model_fields, tell)
    answers = answers_for(question.config, sent.ids())
    ending = attempt.run(sent, answers)
    if step > 1:
        warning = f"Of {size:,} examples one in {step} was perturbed."
        ending = replace(ending, warnings=(*ending.warnings, warning))
    found = Evaluated(ending, attempt.runner.name)
    if ending.outcome != Outcome.OK:
        return found
    predictions = folder / "predictions.jsonl.gz"
    with gzip.open(predictions, "wb", compresslevel=6) as file, made.open("rb") as lines:
        rows = ticking(question.rows(), tell, SCORING, ANSWERED)
        numbers = delta_numbers(
            _pairs(zip(rows, _each(plain, step), lines, strict=True), answers.in_order(), file),
            metric=question.config.metrics.main,
            labels=labels_of(question.config),
            seed=question.seed,
            sp_model=question.sp_model,
            language=question.config.language,
        )
    return replace(found, numbers=numbers, predictions=predictions)


def _each(items: Callable[[], Iterable[T]], step: int) -> Iterator[T]:
    """Return the first item and every `step`th item after it."""
    return islice(items(), 0, None, step)


def _perturbed(
    question: Question, suite: str, tell: Tell, file: IO[bytes]
) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of each variant; write their kinds and correct answers to the file."""
    for row in ticking(question.rows(), tell, gettext_noop("perturbing the examples")):
        found = _variants(question, suite, row)
        file.write(orjson.dumps([(one.kind, one.row.gold) for one in found]) + b"\n")
        for one in found:
            yield question.read(one.row.inputs)


def reading_of(config: TaskConfig) -> Reading:
    """Return what the perturbations must know of a task's examples."""
    answer = config.component(config.answer_field)
    return Reading(
        fields=config.model_fields,
        answer_field=config.answer_field,
        passage_field=answer.reference if answer.type == "span" else None,
        labels=labels_of(config) or (),
        language=config.language,
        group_terms=config.metrics.group_terms,
    )


def _variants(question: Question, suite: str, row: SetRow) -> Sequence[Variant]:
    """Return the variants of an example in a suite."""
    seed, reading = question.seed, reading_of(question.config)
    if suite != PARAPHRASE:
        made = variants(row, reading, family=cast(Family, suite), seed=seed)
        said = question.checked.get(row.uid) if suite == "robustness" else None
        return [*made, reworded(row, said, seed=seed)] if said else made
    assert question.paraphrase
    found = paraphrased(question.paraphrase, row, reading, seed=seed)
    return [found] if found else []


def _pairs(
    bases: Iterable[tuple[SetRow, Answer | None, bytes]],
    answers: Iterator[Answer | None],
    file: gzip.GzipFile,
) -> Iterator[Perturbed]:
    """Yield each example with its variants, in order; write each answer down on the way."""
    for row, answer, line in bases:
        found = []
        for kind, gold in orjson.loads(line):
            said = next(answers)
            file.write(prediction_line(row.uid, said, kind=kind))
            found.append((kind, SetRow(row.uid, {}, tuple(gold), row.slices), said))
        yield Perturbed(row, answer, found)


def prediction_line(uid: str, answer: Answer | None, **more: str) -> bytes:
    """Return a line of a predictions file: `{"uid", "answer", "prob"}`.

    A missing answer is null. `logprob` and `tokens` are left out when unknown.
    """
    said = answer or Answer(None)
    told = {"logprob": said.logprob, "tokens": said.tokens}
    told = {name: value for name, value in told.items() if value is not None}
    return (
        orjson.dumps({"uid": uid, **more, "answer": said.value, "prob": said.prob, **told}) + b"\n"
    )


def read_predictions(lines: Iterable[bytes]) -> Iterator[Answer | None]:
    """Yield the answers in the lines of a predictions file, in the order of the set."""
    for line in lines:
        row = orjson.loads(line)
        yield None if row["answer"] is None else Answer(row["answer"], row["prob"])
