"""Run one whole evaluation without a database: send examples in random order, score answers."""

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
    MAX_PERTURBED_EXAMPLES,
    Answer,
    Ending,
    EvaluationResult,
    InvalidOutput,
    Outcome,
    Runnable,
    SetRow,
    Usage,
)
from evaluation.isolation.inference.exchange import (
    CollectedAnswers,
    ProgressCallback,
    SentExamples,
    build_collected_answers,
    report_while_iterating,
)
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.logs import redact_log
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.scoring.bootstrap import compute_scores
from evaluation.scoring.exchanged import LabelCounts
from evaluation.scoring.groups import choose_group_metric, compute_group_numbers, read_groups
from evaluation.scoring.paraphrase import PARAPHRASE_KIND as PARAPHRASE
from evaluation.scoring.paraphrase import ParaphraseFunction, make_paraphrase, replace_texts
from evaluation.scoring.perturb import Family, PerturbationScope, Variant, make_variants
from evaluation.scoring.robustness import PerturbedExample, compute_delta_numbers
from evaluation.task_shape import get_labels
from tasks.config.schema import TaskConfig

SCORING = gettext_noop("scoring")
PROGRESS_WHEN_ANSWERED = 0.95  # progress when only the scores are missing
T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A set, with everything needed to ask a model about its examples and to score the answers."""

    config: TaskConfig
    rows: Callable[[], Iterable[SetRow]]  # the examples in order, the same on each call
    seed: int = 0
    sp_model: Path | None = None  # the SentencePiece file of sp_bleu
    paraphrase: ParaphraseFunction | None = None  # rephrases texts, for that suite
    checked_paraphrases: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # see `read_checked_paraphrases`
    prepare_inputs: Callable[[Mapping[str, Any]], Mapping[str, Any]] = (
        dict  # inputs with files inserted
    )


@dataclass(frozen=True)
class Attempt:
    """One attempt to run a model, with its runner and limits. The same for all runners.

    `ask_model` writes the examples, passes them to the runner, and checks each answer as it
    arrives. `run` redacts the log and counts missing answers. The runner cleans up after itself.
    report_progress: receives the progress. folder: receives files; the caller deletes it.
    sent_examples: the examples that the model has received before; None if they must be written.
    """

    model: Runnable
    runner: Runner
    limits: Limits
    report_progress: ProgressCallback
    folder: Path
    sent_examples: SentExamples | None = None

    def run(self, sent_examples: SentExamples, answers: CollectedAnswers) -> Ending:
        """Run the model and return how it ended, with the rule about missing answers applied.

        The log is redacted, so it does not repeat the texts that the model read.
        """

        def beat() -> None:
            share = answers.answered_count / max(1, sent_examples.size)
            self.report_progress(
                PROGRESS_WHEN_ANSWERED * share,
                f"{answers.answered_count:,} of {sent_examples.size:,} answers",
            )

        if not sent_examples.size:
            return Ending(Outcome.OK)
        take = answers.take
        ending = self.runner.run(self.model, sent_examples.path, self.limits, take=take, beat=beat)
        if ending.log:
            ending = replace(
                ending, log=redact_log(ending.log, texts=sent_examples.iterate_texts())
            )
        return _apply_missing_answers(ending, answers)


def evaluate_set(question: Question, attempt: Attempt) -> EvaluationResult:
    """Ask a model about an unperturbed set, and score its answers.

    The model sees only the fields that the task's models read: no right answers, no uids, and not
    the order of the set. Propagates exceptions of `attempt.report_progress`.
    """
    answers, ending = ask_model(question, attempt)
    evaluation = EvaluationResult(ending, attempt.runner.name)
    return score_answers(evaluation, question, answers, attempt.report_progress, attempt.folder)


def ask_model(question: Question, attempt: Attempt) -> tuple[CollectedAnswers, Ending]:
    """Return a model's answers to a set and how its run ended, without scoring them."""
    sent_examples = attempt.sent_examples
    if sent_examples is None:
        sent_examples = SentExamples(attempt.folder / "inputs.jsonl")
        # Only the inputs are passed on, so that no right answer or uid reaches the model.
        inputs = (question.prepare_inputs(row.inputs) for row in question.rows())
        sent_examples.write(inputs, question.config.model_fields, attempt.report_progress)
    answers = build_collected_answers(question.config, sent_examples.iterate_ids())
    return answers, attempt.run(sent_examples, answers)


def score_file(
    question: Question, lines: Iterable[bytes], report_progress: ProgressCallback, folder: Path
) -> EvaluationResult:
    """Score a file of answers, one per line, whose ids are the uids of the set's examples."""
    started_at = time.monotonic()
    answers = build_collected_answers(question.config, (row.uid for row in question.rows()))
    ending = read_answers(answers, lines, Ending(Outcome.OK), report_progress)
    unanswered_counts = dict(answers.unanswered_counts) or None
    seconds = time.monotonic() - started_at
    usage = Usage(seconds, answers=answers.answered_count, unanswered=unanswered_counts)
    evaluation = EvaluationResult(replace(ending, usage=usage), "file")
    return score_answers(evaluation, question, answers, report_progress, folder)


def read_answers(
    answers: CollectedAnswers,
    lines: Iterable[bytes],
    ending: Ending,
    report_progress: ProgressCallback,
) -> Ending:
    """Collect the answers in the lines, and return the ending of the run.

    The outcome or the warnings of the ending change if answers are invalid or missing.
    """
    try:
        for line in report_while_iterating(
            lines, report_progress, gettext_noop("reading the predictions")
        ):
            answers.take(line.rstrip(b"\n"))
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return _apply_missing_answers(ending, answers)


def _apply_missing_answers(ending: Ending, answers: CollectedAnswers) -> Ending:
    """Return the ending with the outcome or the warning that missing answers cause.

    The rule is the same for every model.
    """
    if answers.unanswered_counts:
        usage = replace(ending.usage, unanswered=dict(answers.unanswered_counts))
        ending = replace(ending, usage=usage)
    if ending.outcome != Outcome.OK:
        return ending
    try:
        warning = answers.check_missing()
    except InvalidOutput as error:
        return replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
    return _add_warning(ending, warning)


def _add_warning(ending: Ending, warning: str) -> Ending:
    """Return the ending with a further warning; unchanged if the warning is empty."""
    if not warning:
        return ending
    return replace(ending, warnings=(*ending.warnings, warning))


def score_answers(
    evaluation: EvaluationResult,
    question: Question,
    answers: CollectedAnswers,
    report_progress: ProgressCallback,
    folder: Path,
) -> EvaluationResult:
    """Return the evaluation with scores and a file of all predictions.

    An evaluation whose run did not end well is returned unchanged.
    """
    if evaluation.ending.outcome != Outcome.OK:
        return evaluation
    predictions = folder / "predictions.jsonl.gz"
    config = question.config
    groups, metrics = read_groups(config), config.metrics.computed_names
    label_counts = LabelCounts(get_labels(config) or ())
    rows = map(
        groups.add_mentions,
        report_while_iterating(question.rows(), report_progress, SCORING, PROGRESS_WHEN_ANSWERED),
    )
    slices = list(dict.fromkeys(config.slices + groups.fields))
    with gzip.open(predictions, "wb", compresslevel=6) as file:
        numbers = compute_scores(
            _store_answers(zip(rows, answers.iterate_in_order(), strict=True), file, label_counts),
            metrics=metrics,
            labels=get_labels(config),
            slices=slices,
            seed=question.seed,
            sp_model=question.sp_model,
            language=config.language,
        )
    numbers += compute_group_numbers(numbers, groups, choose_group_metric(metrics))
    exchanged = label_counts.find_exchanged_labels()
    return replace(evaluation, numbers=numbers, predictions=predictions, exchanged=exchanged)


def _store_answers(
    pairs: Iterable[tuple[SetRow, Answer | None]], file: gzip.GzipFile, label_counts: LabelCounts
) -> Iterator[tuple[SetRow, Answer | None]]:
    """Yield the pairs unchanged, after writing each answer to the file and counting it."""
    for row, answer in pairs:
        file.write(build_prediction_line(row.uid, answer))
        if answer is not None and isinstance(answer.value, str):
            label_counts.add(row.gold, answer.value)
        yield row, answer


def evaluate_suite(
    question: Question,
    suite: str,
    read_plain_answers: Callable[[], Iterable[Answer | None]],
    attempt: Attempt,
) -> EvaluationResult:
    """Ask a model about perturbed variants of a set; compare its answers with those to the set.

    If the set has more than MAX_PERTURBED_EXAMPLES, takes only every second, third, … example.
    Apart from that, works like `evaluate_set`. read_plain_answers: returns the answers to the set,
    in order; the same at each call.
    """
    report_progress, folder = attempt.report_progress, attempt.folder
    message = gettext_noop("counting the examples")
    size = sum(1 for _ in report_while_iterating(question.rows(), report_progress, message))
    step = max(1, -(-size // MAX_PERTURBED_EXAMPLES))  # rounded up
    question = replace(question, rows=partial(_take_every_nth, question.rows, step))
    sent_examples, variants_file = SentExamples(folder / "inputs.jsonl"), folder / "variants.jsonl"
    with variants_file.open("wb") as file:
        sent_examples.write(
            _write_variants(question, suite, report_progress, file),
            question.config.model_fields,
            report_progress,
        )
    answers = build_collected_answers(question.config, sent_examples.iterate_ids())
    ending = attempt.run(sent_examples, answers)
    if step > 1:
        ending = _add_warning(ending, f"Of {size:,} examples one in {step} was perturbed.")
    evaluation = EvaluationResult(ending, attempt.runner.name)
    if ending.outcome != Outcome.OK:
        return evaluation
    predictions = folder / "predictions.jsonl.gz"
    with gzip.open(predictions, "wb", compresslevel=6) as file, variants_file.open("rb") as lines:
        rows = report_while_iterating(
            question.rows(), report_progress, SCORING, PROGRESS_WHEN_ANSWERED
        )
        base_examples = zip(rows, _take_every_nth(read_plain_answers, step), lines, strict=True)
        numbers = compute_delta_numbers(
            _pair_with_variants(base_examples, answers.iterate_in_order(), file),
            metric=question.config.metrics.main,
            labels=get_labels(question.config),
            seed=question.seed,
            sp_model=question.sp_model,
            language=question.config.language,
        )
    return replace(evaluation, numbers=numbers, predictions=predictions)


def _take_every_nth(items: Callable[[], Iterable[T]], step: int) -> Iterator[T]:
    """Return an iterator over the first item and every `step`th item after it."""
    return islice(items(), 0, None, step)


def _write_variants(
    question: Question, suite: str, report_progress: ProgressCallback, file: IO[bytes]
) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of each variant.

    Also writes a line for each example to the file: the kinds and right answers of its variants.
    """
    for row in report_while_iterating(
        question.rows(), report_progress, gettext_noop("perturbing the examples")
    ):
        row_variants = _make_row_variants(question, suite, row)
        kinds = [(variant.kind, variant.row.gold) for variant in row_variants]
        file.write(orjson.dumps(kinds) + b"\n")
        for variant in row_variants:
            yield question.prepare_inputs(variant.row.inputs)


def build_perturbation_scope(config: TaskConfig) -> PerturbationScope:
    """Return the facts about a task's examples that perturbations need."""
    answer = config.get_component(config.answer_field)
    passage_field = None
    if answer.type == "span":
        passage_field = answer.reference
    return PerturbationScope(
        fields=config.model_fields,
        answer_field=config.answer_field,
        passage_field=passage_field,
        labels=get_labels(config) or (),
        language=config.language,
        group_terms=config.metrics.group_terms,
    )


def _make_row_variants(question: Question, suite: str, row: SetRow) -> Sequence[Variant]:
    """Return the variants of an example in a suite."""
    seed, scope = question.seed, build_perturbation_scope(question.config)
    if suite == PARAPHRASE:
        assert question.paraphrase  # `evaluate_from_shell` runs this suite only with a model for it
        paraphrase = make_paraphrase(question.paraphrase, row, scope, seed=seed)
        return [] if paraphrase is None else [paraphrase]
    row_variants = list(make_variants(row, scope, family=cast(Family, suite), seed=seed))
    if suite == "robustness" and (texts := question.checked_paraphrases.get(row.uid)):
        row_variants.append(replace_texts(row, texts, seed=seed))
    return row_variants


def _pair_with_variants(
    base_examples: Iterable[tuple[SetRow, Answer | None, bytes]],
    answers: Iterator[Answer | None],
    file: gzip.GzipFile,
) -> Iterator[PerturbedExample]:
    """Yield each example with its variants, in order. Writes each variant's answer to the file."""
    for row, answer, line in base_examples:
        row_variants = []
        for kind, gold in orjson.loads(line):
            variant_answer = next(answers)
            file.write(build_prediction_line(row.uid, variant_answer, kind=kind))
            # Without inputs: scoring needs only right answers, and a million texts take memory.
            variant_row = SetRow(row.uid, {}, tuple(gold), row.slices)
            row_variants.append((kind, variant_row, variant_answer))
        yield PerturbedExample(row, answer, row_variants)


def build_prediction_line(uid: str, answer: Answer | None, **extra_fields: str) -> bytes:
    """Return a line of a predictions file: `{"uid", "answer", "prob"}`.

    A missing answer is null. `logprob` and `tokens` are left out when unknown.
    """
    answer = answer or Answer(None)
    line = {"uid": uid, **extra_fields, "answer": answer.value, "prob": answer.prob}
    if answer.logprob is not None:
        line["logprob"] = answer.logprob
    if answer.tokens is not None:
        line["tokens"] = answer.tokens
    return orjson.dumps(line) + b"\n"


def read_predictions(lines: Iterable[bytes]) -> Iterator[Answer | None]:
    """Yield the answers in the lines of a predictions file, in order; None for a missing answer.

    Reads only values and probabilities.
    """
    for line in lines:
        row = orjson.loads(line)
        if row["answer"] is None:
            yield None
        else:
            yield Answer(row["answer"], row["prob"])
