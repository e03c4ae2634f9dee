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
from evaluation.isolation.inference.exchange import (
    CollectedAnswers,
    SentExamples,
    Tell,
    answers_for,
    report_while_iterating,
)
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.logs import redact_log
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.scoring.bootstrap import score
from evaluation.scoring.exchanged import LabelCounts
from evaluation.scoring.groups import choose_group_metric, compute_group_numbers, read_groups
from evaluation.scoring.paraphrase import KIND as PARAPHRASE
from evaluation.scoring.paraphrase import Paraphrase, make_paraphrase, replace_texts
from evaluation.scoring.perturb import Family, PerturbationScope, Variant, make_variants
from evaluation.scoring.robustness import PerturbedExample, compute_delta_numbers
from evaluation.task_shape import labels_of
from tasks.config.schema import TaskConfig

SCORING = gettext_noop("scoring")
PROGRESS_WHEN_ANSWERED = 0.95  # progress when only the scores are missing
T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A set, with everything needed to ask a model about it and to score the answers."""

    config: TaskConfig
    rows: Callable[[], Iterable[SetRow]]  # the examples in order; the same at each call
    seed: int = 0
    sp_model: Path | None = None  # the SentencePiece file of sp_bleu
    paraphrase: Paraphrase | None = None  # says texts in other words, for that suite
    checked: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # see `read_checked_paraphrases`
    read: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict  # inputs, files in their place


@dataclass(frozen=True)
class Attempt:
    """A model with its runner and limits, wherever it runs: the protocol of all runners.

    `ask_model` writes the examples, gives them to the runner, and checks each answer that comes;
    `run` redacts the log and counts what is missing. The runner cleans up after itself. folder:
    receives files; the caller deletes it. sent: the examples that the model has got before; None:
    they are written now.
    """

    model: Runnable
    runner: Runner
    limits: Limits
    tell: Tell
    folder: Path
    sent: SentExamples | None = None

    def run(self, sent: SentExamples, answers: CollectedAnswers) -> Ending:
        """Run the model and return how it ended, with the rule about missing answers applied.

        The log is redacted, so it does not repeat the texts that the model read.
        """

        def beat() -> None:
            share = answers.answered / max(1, sent.size)
            self.tell(
                PROGRESS_WHEN_ANSWERED * share, f"{answers.answered:,} of {sent.size:,} answers"
            )

        if not sent.size:
            return Ending(Outcome.OK)
        take = answers.take
        ending = self.runner.run(self.model, sent.path, self.limits, take=take, beat=beat)
        if ending.log:
            ending = replace(ending, log=redact_log(ending.log, texts=sent.texts()))
        return _add_missing_answers(ending, answers)


def evaluate_set(question: Question, attempt: Attempt) -> Evaluated:
    """Ask a model about an unperturbed set, and score its answers.

    The model sees only the fields that the task's models read: no right answers, no uids, and not
    the order of the set. Propagates exceptions of `attempt.tell`.
    """
    answers, ending = ask_model(question, attempt)
    evaluated = Evaluated(ending, attempt.runner.name)
    return score_answers(evaluated, question, answers, attempt.tell, attempt.folder)


def ask_model(question: Question, attempt: Attempt) -> tuple[CollectedAnswers, Ending]:
    """Return a model's answers to a set and how its run ended, without scoring them."""
    sent_examples = attempt.sent
    if sent_examples is None:
        sent_examples = SentExamples(attempt.folder / "inputs.jsonl")
        # Only the inputs go on, so that no right answer and no uid can reach the model.
        inputs = (question.read(row.inputs) for row in question.rows())
        sent_examples.write(inputs, question.config.model_fields, attempt.tell)
    answers = answers_for(question.config, sent_examples.ids())
    return answers, attempt.run(sent_examples, answers)


def score_file(question: Question, lines: Iterable[bytes], tell: Tell, folder: Path) -> Evaluated:
    """Score a file of answers, one example per line, identified by the set's uids."""
    started_at = time.monotonic()
    answers = answers_for(question.config, (row.uid for row in question.rows()))
    ending = read_answers(answers, lines, Ending(Outcome.OK), tell)
    unanswered = dict(answers.unanswered) or None
    seconds = time.monotonic() - started_at
    usage = Usage(seconds, answers=answers.answered, unanswered=unanswered)
    evaluated = Evaluated(replace(ending, usage=usage), "file")
    return score_answers(evaluated, question, answers, tell, folder)


def read_answers(
    answers: CollectedAnswers, lines: Iterable[bytes], ending: Ending, tell: Tell
) -> Ending:
    """Collect the answers in the lines, and return the ending.

    Its outcome or warnings change if answers are invalid or missing.
    """
    try:
        for line in report_while_iterating(lines, tell, gettext_noop("reading the predictions")):
            answers.take(line.rstrip(b"\n"))
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return _add_missing_answers(ending, answers)


def _add_missing_answers(ending: Ending, answers: CollectedAnswers) -> Ending:
    """Return the ending after the rule about missing answers, which is the same for every model."""
    if answers.unanswered:
        usage = replace(ending.usage, unanswered=dict(answers.unanswered))
        ending = replace(ending, usage=usage)
    if ending.outcome != Outcome.OK:
        return ending
    try:
        warning = answers.end()
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return _add_warning(ending, warning)


def _add_warning(ending: Ending, warning: str) -> Ending:
    """Return the ending with a further warning; unchanged if the warning is empty."""
    if not warning:
        return ending
    return replace(ending, warnings=(*ending.warnings, warning))


def score_answers(
    evaluation: Evaluated, question: Question, answers: CollectedAnswers, tell: Tell, folder: Path
) -> Evaluated:
    """Return the evaluation with scores and a file of all predictions.

    An evaluation whose run did not end well is returned unchanged.
    """
    if evaluation.ending.outcome != Outcome.OK:
        return evaluation
    predictions = folder / "predictions.jsonl.gz"
    config = question.config
    groups, metrics = read_groups(config), config.metrics.computed
    label_counts = LabelCounts(labels_of(config) or ())
    rows = map(
        groups.add_mentions,
        report_while_iterating(question.rows(), tell, SCORING, PROGRESS_WHEN_ANSWERED),
    )
    slices = list(dict.fromkeys(config.slices + groups.fields))
    with gzip.open(predictions, "wb", compresslevel=6) as file:
        numbers = score(
            _store_answers(zip(rows, answers.in_order(), strict=True), file, label_counts),
            metrics=metrics,
            labels=labels_of(config),
            slices=slices,
            seed=question.seed,
            sp_model=question.sp_model,
            language=config.language,
        )
    numbers += compute_group_numbers(numbers, groups, choose_group_metric(metrics))
    exchanged = label_counts.exchanged()
    return replace(evaluation, numbers=numbers, predictions=predictions, exchanged=exchanged)


def _store_answers(
    pairs: Iterable[tuple[SetRow, Answer | None]], file: gzip.GzipFile, label_counts: LabelCounts
) -> Iterator[tuple[SetRow, Answer | None]]:
    """Yield the pairs unchanged, after writing each answer to the file and counting it."""
    for row, answer in pairs:
        file.write(prediction_line(row.uid, answer))
        if answer is not None and isinstance(answer.value, str):
            label_counts.add(row.gold, answer.value)
        yield row, answer


def evaluate_suite(
    question: Question,
    suite: str,
    read_plain_answers: Callable[[], Iterable[Answer | None]],
    attempt: Attempt,
) -> Evaluated:
    """Ask a model about perturbed variants of a set, and compare with its answers to the set.

    From a set with more than MOST_BASES examples, takes at most MOST_BASES at equal distances.
    Otherwise as `evaluate_set`. read_plain_answers: returns the answers to the set, in order, the
    same at each call.
    """
    tell, folder = attempt.tell, attempt.folder
    message = gettext_noop("counting the examples")
    size = sum(1 for _ in report_while_iterating(question.rows(), tell, message))
    step = max(1, -(-size // MOST_BASES))  # rounded up
    question = replace(question, rows=partial(_take_every, question.rows, step))
    sent_examples, variants_file = SentExamples(folder / "inputs.jsonl"), folder / "variants.jsonl"
    with variants_file.open("wb") as file:
        sent_examples.write(
            _write_variants(question, suite, tell, file), question.config.model_fields, tell
        )
    answers = answers_for(question.config, sent_examples.ids())
    ending = attempt.run(sent_examples, answers)
    if step > 1:
        ending = _add_warning(ending, f"Of {size:,} examples one in {step} was perturbed.")
    evaluation = Evaluated(ending, attempt.runner.name)
    if ending.outcome != Outcome.OK:
        return evaluation
    predictions = folder / "predictions.jsonl.gz"
    with gzip.open(predictions, "wb", compresslevel=6) as file, variants_file.open("rb") as lines:
        rows = report_while_iterating(question.rows(), tell, SCORING, PROGRESS_WHEN_ANSWERED)
        bases = zip(rows, _take_every(read_plain_answers, step), lines, strict=True)
        numbers = compute_delta_numbers(
            _pair_with_variants(bases, answers.in_order(), file),
            metric=question.config.metrics.main,
            labels=labels_of(question.config),
            seed=question.seed,
            sp_model=question.sp_model,
            language=question.config.language,
        )
    return replace(evaluation, numbers=numbers, predictions=predictions)


def _take_every(items: Callable[[], Iterable[T]], step: int) -> Iterator[T]:
    """Return an iterator over the first item and every `step`th item after it."""
    return islice(items(), 0, None, step)


def _write_variants(
    question: Question, suite: str, tell: Tell, file: IO[bytes]
) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of each variant.

    Writes each example's kinds and right answers to the file.
    """
    for row in report_while_iterating(
        question.rows(), tell, gettext_noop("perturbing the examples")
    ):
        row_variants = _make_row_variants(question, suite, row)
        kinds = [(variant.kind, variant.row.gold) for variant in row_variants]
        file.write(orjson.dumps(kinds) + b"\n")
        for variant in row_variants:
            yield question.read(variant.row.inputs)


def perturbation_scope_of(config: TaskConfig) -> PerturbationScope:
    """Return the facts about a task's examples that perturbations need."""
    answer = config.component(config.answer_field)
    passage_field = None
    if answer.type == "span":
        passage_field = answer.reference
    return PerturbationScope(
        fields=config.model_fields,
        answer_field=config.answer_field,
        passage_field=passage_field,
        labels=labels_of(config) or (),
        language=config.language,
        group_terms=config.metrics.group_terms,
    )


def _make_row_variants(question: Question, suite: str, row: SetRow) -> Sequence[Variant]:
    """Return the variants of an example in a suite."""
    seed, reading = question.seed, perturbation_scope_of(question.config)
    if suite == PARAPHRASE:
        assert question.paraphrase  # `evaluate_by_hand` runs this suite only with a model for it
        paraphrase = make_paraphrase(question.paraphrase, row, reading, seed=seed)
        return [] if paraphrase is None else [paraphrase]
    row_variants = list(make_variants(row, reading, family=cast(Family, suite), seed=seed))
    if suite == "robustness" and (texts := question.checked.get(row.uid)):
        row_variants.append(replace_texts(row, texts, seed=seed))
    return row_variants


def _pair_with_variants(
    bases: Iterable[tuple[SetRow, Answer | None, bytes]],
    answers: Iterator[Answer | None],
    file: gzip.GzipFile,
) -> Iterator[PerturbedExample]:
    """Yield each example with its variants, in order. Writes each variant's answer to the file."""
    for row, answer, line in bases:
        row_variants = []
        for kind, gold in orjson.loads(line):
            variant_answer = next(answers)
            file.write(prediction_line(row.uid, variant_answer, kind=kind))
            # Without inputs: scoring needs only what is right, and a million texts take memory.
            variant_row = SetRow(row.uid, {}, tuple(gold), row.slices)
            row_variants.append((kind, variant_row, variant_answer))
        yield PerturbedExample(row, answer, row_variants)


def prediction_line(uid: str, answer: Answer | None, **more: str) -> bytes:
    """Return a line of a predictions file: `{"uid", "answer", "prob"}`.

    A missing answer is null. `logprob` and `tokens` are left out when unknown.
    """
    answer = answer or Answer(None)
    line = {"uid": uid, **more, "answer": answer.value, "prob": answer.prob}
    if answer.logprob is not None:
        line["logprob"] = answer.logprob
    if answer.tokens is not None:
        line["tokens"] = answer.tokens
    return orjson.dumps(line) + b"\n"


def read_predictions(lines: Iterable[bytes]) -> Iterator[Answer | None]:
    """Yield the answers in the lines of a predictions file, in the order of the set."""
    for line in lines:
        row = orjson.loads(line)
        if row["answer"] is None:
            yield None
        else:
            yield Answer(row["answer"], row["prob"])
