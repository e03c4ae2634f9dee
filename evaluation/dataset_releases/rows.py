"""Turn examples into the rows of a dataset: which examples enter, and what their rows contain.

People appear only as keyed hashes. Texts are limited to the fields that the configuration names. So
ids that an import or a crowd provider left in other fields are not published.
"""

import hmac
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connections
from django.db.models import Count, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, NullIf

from annotation.models import Example, TargetOutput
from evaluation.dataset_releases.criteria_columns import CriteriaColumns, JudgedCriteria
from evaluation.dataset_releases.splits import RowCounts
from evaluation.dataset_releases.step_columns import make_step_rows
from evaluation.models import PseudonymKey
from tasks.config.judging import STEPS_KEY
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.formats.base import PRIVATE_NAMES
from tasks.models import Context, Round, TargetVersion
from validation.consensus.corrections import list_right_answers
from validation.decisions.consensus_rows import get_policy
from validation.models import ExampleTag, OwnerDecision, Validation

CHUNK_EXAMPLES = 2000
"""The number of examples that are read at a time."""
Row = dict[str, Any]
_Vote = tuple[str, str, str | None]
"""A vote: its label or verdict, its kind (`user`, `program` or `owner`), and a pseudonym."""


class _Judgements(NamedTuple):
    """The judgements of people and the outputs of targets for a chunk, by example id.

    Most examples have only votes.
    """

    votes: Mapping[int, Sequence[_Vote]]
    corrections: Mapping[int, Sequence[Row]]
    """The right answers that validators typed."""
    outputs: Mapping[int, Sequence[Any]]
    """The outputs of the targets, in the targets' order."""
    tags: Mapping[int, Sequence[str]]
    step_votes: Mapping[int, Sequence[Row]]
    """The answers about the steps of a conversation, at the places of the votes."""
    criteria: Mapping[int, JudgedCriteria]


IS_VERIFIED = Q(consensus__is_verified=True)
IS_UNJUDGED = Q(consensus__isnull=True, outcome=Example.Outcome.NOT_FOOLED)
"""Examples that nobody judged and whose author agreed with the model. They enter only train."""
IS_RELEASABLE = IS_VERIFIED | IS_UNJUDGED
JSON_COLUMNS = ("inputs", "metadata", "support")
"""Columns that contain JSON and are read as texts."""


class _StoredExample(NamedTuple):
    """The columns read of an example, as the database stores them."""

    pk: int
    uuid: UUID | str
    uid: str | None
    annotator_id: int | None
    by_program: bool
    context_id: int
    outcome: str
    shown_at: datetime | None
    created_at: datetime
    parent__uuid: UUID | str | None
    parent__uid: str | None
    challenge: str | None
    context_probability: float | None
    context_choices: int | None
    vote_draw__chance: float | None
    # SQLite returns 0 or 1.
    vote_draw__is_drawn: bool | None
    vote_draw__judge_score: float | None
    consensus__label: str | None
    consensus__is_verified: bool | None
    consensus__decided_by: str | None
    consensus__votes: int | None
    inputs_text: str
    metadata_text: str
    support_text: str | None


COLUMNS = _StoredExample._fields[: -len(JSON_COLUMNS)]
MODEL_WRONG_BY_OUTCOME = {
    Example.Outcome.FOOLED.value: True,
    Example.Outcome.NOT_FOOLED.value: False,
}


def select_releasable_examples(round: Round) -> QuerySet[Example]:
    """Select the examples that a dataset of the round contains.

    Excludes examples that are retracted, undecided, refuted or flagged.
    """
    return Example.objects.filter(IS_RELEASABLE, round=round, retracted_at__isnull=True)


def find_balanced_field(config: TaskConfig) -> str | None:
    """Return the field whose labels are balanced across splits; None if answers are not choices."""
    answer_field = config.answer_field
    return answer_field if config.get_component(answer_field).type == "multiclass" else None


def choose_balanced_label(consensus: str | None, own_label: Any) -> str:
    """Return the label by which a row is balanced: the consensus, otherwise the author's label.

    Empty if neither exists. `count_rows` does the same in SQL.
    """
    if consensus or own_label is None:
        return consensus or ""
    return convert_to_text(own_label)


def count_rows(round: Round) -> RowCounts:
    """Return the number of rows by author and label, without rows by programs. One query."""
    field = find_balanced_field(round.task.config)
    # Tasks without choices have nothing to balance, so all rows get one label.
    label: Any = Value("")
    if field:
        author_label = KeyTextTransform(field, "inputs")
        consensus_label = NullIf("consensus__label", Value(""))
        label = Coalesce(consensus_label, author_label, Value(""), output_field=TextField())
    rows = (
        select_releasable_examples(round)
        .filter(by_program=False)
        .annotate(balanced=label)
        # Without the default order, which would be part of the grouping.
        .order_by()
        .values_list("annotator", "balanced", "consensus__is_verified")
        .annotate(times=Count("pk"))
    )
    counts = RowCounts()
    for author, balanced_label, is_verified, row_count in rows:
        counts.add(author, balanced_label, bool(is_verified), row_count)
    return counts


class FrozenRow(NamedTuple):
    """An example in the form in which it enters a dataset."""

    example_id: int
    uid: str
    author: int | None
    label: str  # by which splits are balanced
    is_verified: bool
    row: Row  # without its split
    fields: Row  # the context's and the author's fields by name, which the row has as JSON text


class Freezer:
    """A factory that makes rows from a round's examples, one chunk at a time, oldest first."""

    def __init__(
        self, round: Round, *, includes_imported_data: bool = False, includes_tags: bool = False
    ):
        """Read the data that all rows of a round share.

        includes_imported_data: whether rows include all imported data, except what names
        people. includes_tags: whether rows include reviewers' tags.
        """
        self._round, config = round, round.task.config
        self._includes_imported_data, self._includes_tags = includes_imported_data, includes_tags
        # Created at the first release; later releases get the same names.
        key, _ = PseudonymKey.objects.get_or_create(task=round.task)
        self._key = bytes.fromhex(key.key)
        # A person's hash is needed for each of their rows and votes.
        self._get_pseudonym = lru_cache(100_000)(self._make_pseudonym)
        self._criteria = CriteriaColumns(config, self._get_pseudonym)
        self._answer_field, self._balanced_field = config.answer_field, find_balanced_field(config)
        self._writes_corrections = config.validation.corrections or includes_imported_data
        # None if nobody judges steps, as in most tasks: then no row has to look for any.
        self._step_policy = get_policy(round) if config.validation.steps else None
        self._context_names = [component.name for component in config.context]
        self._input_names = [component.name for component in config.input]
        self._metadata_names = [component.name for component in config.metadata.create]
        self._contexts: dict[int, Row] = {}
        self._context_fields: dict[int, Row] = {}
        # All versions of the task at once, because rows refer to them by id.
        versions = TargetVersion.objects.filter(target__task=round.task)
        self._version_names: dict[int, tuple[str, str]] = {}
        for pk, name, digest in versions.values_list("pk", "target__name", "digest"):
            self._version_names[pk] = name, digest

    def iterate_chunks(self, examples: QuerySet[Example]) -> Iterator[Iterator[FrozenRow]]:
        """Yield chunks of the examples' rows, oldest first. A few queries for each chunk.

        A chunk's rows are made lazily, so that a row can be freed before the next one is made. Ids
        are read first. With a LIMIT, PostgreSQL would scan the consensus table from the first
        example for every chunk.
        """
        rows = (
            examples.order_by("pk")
            .annotate(**make_json_texts(*JSON_COLUMNS))
            .values_list(*_StoredExample._fields)
        )
        # An array takes eight bytes per id, a list about forty.
        all_ids = array(
            "q", examples.order_by("pk").values_list("pk", flat=True).iterator(CHUNK_EXAMPLES)
        )
        for start in range(0, len(all_ids), CHUNK_EXAMPLES):
            example_ids = all_ids[start : start + CHUNK_EXAMPLES]
            chunk = read_stored_values(rows.filter(pk__gte=example_ids[0], pk__lte=example_ids[-1]))
            yield self._freeze_chunk(list(map(_StoredExample._make, chunk)), example_ids)

    def _freeze_chunk(
        self, chunk: Sequence[_StoredExample], example_ids: Sequence[int]
    ) -> Iterator[FrozenRow]:
        self._read_contexts({example.context_id for example in chunk})
        judgements = self._read_judgements(example_ids)
        return (self._freeze_example(example, judgements) for example in chunk)

    def _make_pseudonym(self, role: str, annotator: int | None) -> str | None:
        """Return a person's pseudonym in this task's datasets, which differs by role.

        None if the person is unknown.
        """
        if annotator is None:
            return None
        return hmac.digest(self._key, f"{role}:{annotator}".encode(), "sha256").hex()[:20]

    def _read_contexts(self, example_ids: set[int]) -> None:
        # Consecutive examples share contexts. A cache of all would grow with the round.
        if len(self._contexts) > 10 * CHUNK_EXAMPLES:
            self._contexts.clear()
            self._context_fields.clear()
        # Only those that earlier chunks have not read.
        contexts = Context.objects.filter(pk__in=example_ids - self._contexts.keys())
        for pk, digest, tag, fields in contexts.values_list("pk", "digest", "tag", "fields"):
            released_fields = pick_entries(fields, self._context_names)
            self._context_fields[pk] = released_fields
            self._contexts[pk] = {
                "cid": digest,
                "context": {"context_json": convert_to_json(released_fields), "tag": tag},
                "tag": tag,
            }

    def _read_judgements(self, example_ids: Sequence[int]) -> _Judgements:
        """Read the judgements of people and outputs of targets for these examples.

        Votes come in the order in which they were cast, followed by decisions of owners.
        """
        votes: dict[int, list[_Vote]] = defaultdict(list)
        corrections: dict[int, list[Row]] = defaultdict(list)
        tags: dict[int, list[str]] = defaultdict(list)
        # By bounds: a list of 2,000 ids would make each query slow to parse.
        id_range, answer_columns = (
            {"example__gte": example_ids[0], "example__lte": example_ids[-1]},
            ("label", "verdict"),
        )
        validations = Validation.objects.filter(**id_range).order_by("pk")
        # Read only if corrections are written.
        typed_correction = (
            KeyTextTransform(CORRECTION_FIELD, "metadata")
            if self._writes_corrections
            else Value("")
        )
        has_steps = self._step_policy is not None
        chosen_steps = KeyTextTransform(STEPS_KEY, "metadata") if has_steps else Value("")
        step_votes: dict[int, list[Row]] = defaultdict(list)
        for example, label, verdict, validator, by_program, correction, steps in read_stored_values(
            validations.values_list(
                "example_id",
                *answer_columns,
                "validator_id",
                "by_program",
                typed_correction,
                chosen_steps,
            )
        ):
            # At the place of the vote, also of one without such answers.
            if has_steps:
                step_votes[example].append(orjson.loads(steps) if steps else {})
            name = self._get_pseudonym("validator", validator)
            votes[example].append((label or verdict, "program" if by_program else "user", name))
            if correction:
                corrections[example].append({"answer": correction, "validator": name})
        # An owner's decision counts as a vote of its own kind, after all votes of people.
        decisions = OwnerDecision.objects.filter(**id_range, withdrawn_at__isnull=True)
        for example, label, verdict in decisions.values_list("example_id", *answer_columns):
            votes[example].append((label or verdict, "owner", None))
        if self._includes_tags:
            example_tags = ExampleTag.objects.filter(**id_range).order_by("name")
            for example, name in example_tags.values_list("example_id", "name"):
                tags[example].append(name)
        outputs, criteria = _read_outputs(example_ids), self._criteria.read(example_ids)
        return _Judgements(votes, corrections, outputs, tags, step_votes, criteria)

    def _freeze_example(self, example: _StoredExample, judgements: _Judgements) -> FrozenRow:
        pk, uid = example.pk, example.uid or format_uuid(example.uuid)
        parent = example.parent__uuid
        votes, outputs = judgements.votes.get(pk, ()), judgements.outputs.get(pk, ())
        corrections = judgements.corrections.get(pk, ())
        step_votes = judgements.step_votes.get(pk, ())
        step_rows: list[Row] = []
        if self._step_policy is not None:
            step_rows = make_step_rows(votes, step_votes, self._step_policy)
        inputs = orjson.loads(example.inputs_text)
        metadata = orjson.loads(example.metadata_text)
        right_answer = example.consensus__label
        if not right_answer:
            right_answer = self._find_right_answer(example, inputs, outputs, corrections)
        label = convert_to_text(right_answer)
        input_fields = pick_entries(inputs, self._input_names)
        seconds = None
        if example.shown_at:
            elapsed = example.created_at - example.shown_at
            seconds = round(elapsed.total_seconds(), 1)
        row = {
            "uid": uid,
            "split": "",
            "task": self._round.task.code,
            "round": self._round.number,
            "anon_uid": self._get_pseudonym(
                "program" if example.by_program else "author", example.annotator_id
            ),
            "by_program": example.by_program,
            **self._contexts[example.context_id],
            "context_probability": example.context_probability,
            "context_choices": example.context_choices,
            **_describe_draw(example),
            "challenge": example.challenge,
            # Keys in a fixed order, because JSON columns of PostgreSQL and SQLite return them in
            # different ones.
            "support_json": example.support_text and _sort_json_keys(example.support_text),
            "input_json": convert_to_json(input_fields),
            "label": label,
            "validated": bool(example.consensus__is_verified),
            "decided_by": example.consensus__decided_by or "",
            "total_verified": example.consensus__votes or 0,
            "votes": [{"vote": v, "count": n} for v, n in _count_votes(votes).items()],
            "validations": votes,
            "corrections": corrections,
            **self._criteria.make(inputs, judgements.criteria.get(pk)),
            # In all rows, so that later versions have the column if the task stops asking.
            "steps": step_rows,
            "outcome": example.outcome,
            "model_wrong": MODEL_WRONG_BY_OUTCOME.get(example.outcome),
            **self._read_answers(outputs),
            "metadata_json": convert_to_json(
                self._convert_metadata(metadata, is_imported=bool(example.uid))
            ),
            "generated_datetime": example.created_at.date().isoformat(),
            "time_elapsed": seconds,
            "parent_uid": parent and (example.parent__uid or format_uuid(parent)),
            "withdrawn": False,
        }
        # By vote, as tools need them; of people without a pseudonym, `steps` can't tell.
        if self._includes_imported_data and self._step_policy is not None:
            row["step_votes"] = step_votes
        if self._includes_tags:
            row["tags"] = judgements.tags.get(pk, ())
        if example.uid and not row["tag"]:  # imported rows have their own tags
            row["tag"] = str(metadata.get("tag") or "")
        balanced_label = ""
        if self._balanced_field:
            balanced_label = choose_balanced_label(
                example.consensus__label, inputs.get(self._balanced_field)
            )
        fields = self._context_fields[example.context_id] | input_fields
        return FrozenRow(
            pk, uid, example.annotator_id, balanced_label, row["validated"], row, fields
        )

    def _convert_metadata(self, metadata: Row, *, is_imported: bool) -> Row:
        """Return the metadata that may be published.

        These are the fields that the configuration asks for. For imported rows of a whole export,
        they are everything that does not name a person.
        """
        if self._includes_imported_data and is_imported:
            return {
                name: value for name, value in metadata.items() if not PRIVATE_NAMES.search(name)
            }
        return pick_entries(metadata, self._metadata_names)

    def _find_right_answer(
        self,
        example: _StoredExample,
        inputs: Row,
        outputs: Sequence[Any],
        corrections: Sequence[Row],
    ) -> Any:
        """Return the author's answer. If authors give none, return the model's if it is right.

        If the model's answer was found wrong, return the answer that most validators typed.
        Otherwise return "".
        """
        if self._answer_field in inputs:
            return inputs[self._answer_field]
        if example.outcome == Example.Outcome.NOT_FOOLED:
            return orjson.loads(outputs[0][3]).get(self._answer_field, "") if outputs else ""
        is_wrong = example.outcome == Example.Outcome.FOOLED and example.consensus__is_verified
        if not is_wrong:
            return ""
        return next(iter(list_right_answers(corrections)), "")

    def _read_answers(self, outputs: Sequence[Any]) -> Row:
        """Return the columns of the targets' answers.

        The two columns of Dynabench's own export contain only the first target.
        """
        targets = []
        for _, version, is_fooled, output, prob in outputs:
            name, digest = self._version_names[version]
            answer, probs = orjson.loads(output), prob and orjson.loads(prob)
            if probs:
                answer = {**answer, "prob": probs}
            target_info = {"name": name, "version": digest}
            targets.append(
                {**target_info, "output_json": convert_to_json(answer), "fooled": is_fooled}
            )
        first_target = targets[0] if targets else {"name": None, "output_json": None}
        return {
            "model_endpoint_name": first_target["name"],
            "output_json": first_target["output_json"],
            "targets": targets,
        }


def _describe_draw(example: _StoredExample) -> Row:
    """Return the columns of the draw that decides whether people judge an example.

    Null without a draw, which isn't the chance 1: nobody may have been asked.
    """
    is_drawn = example.vote_draw__is_drawn
    return {
        "people_probability": example.vote_draw__chance,
        "people_drawn": None if is_drawn is None else bool(is_drawn),
        "judge_score": example.vote_draw__judge_score,
    }


def _read_outputs(example_ids: Sequence[int]) -> Mapping[int, Sequence[Any]]:
    """Return the targets' answers by example id, in the targets' order."""
    outputs: dict[int, list[Any]] = defaultdict(list)
    rows = TargetOutput.objects.filter(example__gte=example_ids[0], example__lte=example_ids[-1])
    rows = rows.order_by("example_id", "position").annotate(**make_json_texts("output", "prob"))
    columns = ("example_id", "version_id", "fooled", "output_text", "prob_text")
    for row in read_stored_values(rows.values_list(*columns)):
        outputs[row[0]].append(row)
    return outputs


def pick_entries(values: Mapping[str, Any], names: Iterable[str]) -> Row:
    """Return the entries with these names that the mapping contains, in the order of the names."""
    return {name: values[name] for name in names if name in values}


def read_stored_values(rows: QuerySet[Any, Any]) -> list[Any]:
    """Read rows of `values_list` without Django's slow conversion of each value.

    On SQLite, a UUID is then text, and a time is UTC without a time zone.
    """
    # `values_list` would convert a million dates and ids, which are only written as text.
    sql, values = rows.query.sql_with_params()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def format_uuid(stored_value: UUID | str) -> str:
    """Return a UUID in its usual text form, from the value that the database stores."""
    return str(stored_value if isinstance(stored_value, UUID) else UUID(stored_value))


def _count_votes(votes: Sequence[_Vote]) -> Mapping[str, int]:
    """Count how often each label or verdict was given.

    For few votes this is faster than a Counter.
    """
    counts: dict[str, int] = {}
    for vote, _, _ in votes:
        counts[vote] = counts.get(vote, 0) + 1
    return counts


def make_json_texts(*names: str) -> dict[str, Cast]:
    """Return expressions `<name>_text` that read JSON columns as text.

    Parsing the text with orjson is faster than Django's conversion.
    """
    return {f"{name}_text": Cast(name, TextField()) for name in names}


def convert_to_text(value: Any) -> str:
    """Return a value as people read it: a text or label, the words of a span, otherwise JSON."""
    # A span, whose position is of no use to readers.
    if isinstance(value, Mapping) and "text" in value:
        value = value["text"]
    return value if isinstance(value, str) else convert_to_json(value)


def _sort_json_keys(text: str) -> str:
    """Return the JSON with its keys in a fixed order, whatever order the database returns."""
    return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()


def convert_to_json(value: Any) -> str:
    """Return compact JSON, as in a JSONL file."""
    return orjson.dumps(value).decode()
