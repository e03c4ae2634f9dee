"""Turn examples into the rows of a dataset: who may enter, and what is written of each.

Of people nothing is written but keyed hashes; of texts only the fields that the configuration
names, so no id that an import or a crowd provider left there gets out.
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
from evaluation.dataset_releases.splits import Counts
from evaluation.models import PseudonymKey
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.formats.base import PRIVATE_NAMES
from tasks.models import Context, Round, TargetVersion
from validation.consensus.corrections import right_answers
from validation.models import ExampleTag, OwnerDecision, Validation

CHUNK_EXAMPLES = 2000
"""Examples that are read at a time."""
Row = dict[str, Any]
_Vote = tuple[str, str, str | None]
"""Label or verdict; user, program or owner; the validator's pseudonym."""


class _Judgements(NamedTuple):
    """What people and targets said about a chunk's examples, by example id.

    Most have only votes.
    """

    votes: Mapping[int, Sequence[_Vote]]
    corrections: Mapping[int, Sequence[Row]]
    """What validators typed as the right answer."""
    outputs: Mapping[int, Sequence[Any]]
    """What the targets said, in their order."""
    tags: Mapping[int, Sequence[str]]


VERIFIED = Q(consensus__is_verified=True)
UNJUDGED = Q(consensus__isnull=True, outcome=Example.Outcome.NOT_FOOLED)
"""Nobody judged it, and the model agreed with its author: for train only."""
RELEASABLE = VERIFIED | UNJUDGED
JSON_COLUMNS = ("inputs", "metadata", "support")
"""Columns of JSON, which are read as texts."""


class _Stored(NamedTuple):
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
    consensus__label: str | None
    consensus__is_verified: bool | None
    consensus__decided_by: str | None
    consensus__votes: int | None
    inputs_text: str
    metadata_text: str
    support_text: str | None


COLUMNS = _Stored._fields[: -len(JSON_COLUMNS)]
MODEL_WRONG_BY_OUTCOME = {
    Example.Outcome.FOOLED.value: True,
    Example.Outcome.NOT_FOOLED.value: False,
}


def select_releasable(round: Round) -> QuerySet[Example]:
    """Select the examples that a dataset of the round contains.

    Excludes examples that are retracted, undecided, refuted or flagged.
    """
    return Example.objects.filter(RELEASABLE, round=round, retracted_at__isnull=True)


def find_balanced_field(config: TaskConfig) -> str | None:
    """Return the field by whose labels splits are balanced; None if answers are not choices."""
    answer_field = config.answer_field
    return answer_field if config.component(answer_field).type == "multiclass" else None


def choose_balanced_label(consensus: str | None, own_label: Any) -> str:
    """Return the label by which a row is balanced: the consensus, otherwise the author's label.

    Empty if neither exists. `count_rows` does the same in SQL.
    """
    if consensus or own_label is None:
        return consensus or ""
    return to_text(own_label)


def count_rows(round: Round) -> Counts:
    """Return the number of rows by author and label, without rows by programs. One query."""
    field = find_balanced_field(round.task.config)
    # Tasks without choices balance nothing: one label for all.
    label: Any = Value("")
    if field:
        own = KeyTextTransform(field, "inputs")
        agreed = NullIf("consensus__label", Value(""))
        label = Coalesce(agreed, own, Value(""), output_field=TextField())
    rows = (
        select_releasable(round)
        .filter(by_program=False)
        .annotate(balanced=label)
        # Without the default order, which would be grouped by, too.
        .order_by()
        .values_list("annotator", "balanced", "consensus__is_verified")
        .annotate(times=Count("pk"))
    )
    counts = Counts()
    for author, balanced, is_verified, times in rows:
        counts.add(author, balanced, bool(is_verified), times)
    return counts


class FrozenRow(NamedTuple):
    """An example in the form in which it enters a dataset."""

    example: int
    uid: str
    author: int | None
    label: str  # to balance by
    is_verified: bool
    row: Row  # without its split
    fields: Row  # the context's and the author's fields by name; the row has them as JSON text


class Freezer:
    """A factory that makes rows from a round's examples, one chunk at a time, oldest first."""

    def __init__(self, round: Round, *, is_whole: bool = False, is_tagged: bool = False):
        """Read what the rows of a round share.

        is_whole: whether rows include all imported data, except what names people. is_tagged:
        whether rows include reviewers' tags.
        """
        self._round, config = round, round.task.config
        self._is_whole, self._is_tagged = is_whole, is_tagged
        # Made at the first release; afterwards the same names come out each time.
        key, _ = PseudonymKey.objects.get_or_create(task=round.task)
        self._key = bytes.fromhex(key.key)
        # A person's hash is needed for each of their rows and votes.
        self._pseudonym = lru_cache(100_000)(self._new_pseudonym)
        self._answer, self._balanced = config.answer_field, find_balanced_field(config)
        self._corrects = config.validation.corrections or is_whole
        self._context = [component.name for component in config.context]
        self._input = [component.name for component in config.input]
        self._questions = [component.name for component in config.metadata.create]
        self._contexts: dict[int, Row] = {}
        self._context_fields: dict[int, Row] = {}
        # All versions of the task at once: rows name them by id.
        versions = TargetVersion.objects.filter(target__task=round.task)
        self._versions: dict[int, tuple[str, str]] = {}
        for pk, name, digest in versions.values_list("pk", "target__name", "digest"):
            self._versions[pk] = name, digest

    def chunks(self, examples: QuerySet[Example]) -> Iterator[Iterator[FrozenRow]]:
        """Yield chunks of the examples' rows, oldest first. A few queries for each chunk.

        A chunk's rows are made lazily, so that a row can be freed before the next one is made. Ids
        are read first, because with a LIMIT PostgreSQL would scan the consensus table from the
        first example for every chunk.
        """
        rows = (
            examples.order_by("pk")
            .annotate(**make_json_texts(*JSON_COLUMNS))
            .values_list(*_Stored._fields)
        )
        # An array, because it takes eight bytes an id and a list about forty.
        all_ids = array(
            "q", examples.order_by("pk").values_list("pk", flat=True).iterator(CHUNK_EXAMPLES)
        )
        for start in range(0, len(all_ids), CHUNK_EXAMPLES):
            ids = all_ids[start : start + CHUNK_EXAMPLES]
            chunk = read_as_stored(rows.filter(pk__gte=ids[0], pk__lte=ids[-1]))
            yield self._freeze(list(map(_Stored._make, chunk)), ids)

    def _freeze(self, chunk: Sequence[_Stored], ids: Sequence[int]) -> Iterator[FrozenRow]:
        self._read_contexts({example.context_id for example in chunk})
        judgements = self._read_judgements(ids)
        return (self._freeze_one(example, judgements) for example in chunk)

    def _new_pseudonym(self, role: str, annotator: int | None) -> str | None:
        """Return a person's pseudonym in this task's datasets, which differs by role."""
        if annotator is None:
            return None
        return hmac.digest(self._key, f"{role}:{annotator}".encode(), "sha256").hex()[:20]

    def _read_contexts(self, ids: set[int]) -> None:
        # Contexts repeat in consecutive examples. A cache of all would grow with the round.
        if len(self._contexts) > 10 * CHUNK_EXAMPLES:
            self._contexts.clear()
            self._context_fields.clear()
        # Only those that no earlier chunk has read.
        contexts = Context.objects.filter(pk__in=ids - self._contexts.keys())
        for pk, digest, tag, fields in contexts.values_list("pk", "digest", "tag", "fields"):
            released_fields = pick(fields, self._context)
            self._context_fields[pk] = released_fields
            self._contexts[pk] = {
                "cid": digest,
                "context": {"context_json": to_json(released_fields), "tag": tag},
                "tag": tag,
            }

    def _read_judgements(self, ids: Sequence[int]) -> _Judgements:
        """Read the judgements of people and outputs of targets for these examples.

        Votes come in the order in which they were cast, followed by decisions of owners.
        """
        votes: dict[int, list[_Vote]] = defaultdict(list)
        corrections: dict[int, list[Row]] = defaultdict(list)
        tags: dict[int, list[str]] = defaultdict(list)
        # By bounds and not by ids: a list of 2,000 ids makes each query slow to parse.
        of_these, columns = {"example__gte": ids[0], "example__lte": ids[-1]}, ("label", "verdict")
        validations = Validation.objects.filter(**of_these).order_by("pk")
        # Read only if corrections are written.
        typed_correction = (
            KeyTextTransform(CORRECTION_FIELD, "metadata") if self._corrects else Value("")
        )
        for example, label, verdict, validator, by_program, correction in read_as_stored(
            validations.values_list(
                "example_id", *columns, "validator_id", "by_program", typed_correction
            )
        ):
            name = self._pseudonym("validator", validator)
            votes[example].append((label or verdict, "program" if by_program else "user", name))
            if correction:
                corrections[example].append({"answer": correction, "validator": name})
        # An owner's decision counts as a vote of its own kind, after all votes of people.
        decisions = OwnerDecision.objects.filter(**of_these, withdrawn_at__isnull=True)
        for example, label, verdict in decisions.values_list("example_id", *columns):
            votes[example].append((label or verdict, "owner", None))
        if self._is_tagged:
            tagged = ExampleTag.objects.filter(**of_these).order_by("name")
            for example, name in tagged.values_list("example_id", "name"):
                tags[example].append(name)
        return _Judgements(votes, corrections, _read_outputs(ids), tags)

    def _freeze_one(self, example: _Stored, judgements: _Judgements) -> FrozenRow:
        pk, uid = example.pk, example.uid or format_uuid(example.uuid)
        parent = example.parent__uuid
        votes, outputs = judgements.votes.get(pk, ()), judgements.outputs.get(pk, ())
        corrections = judgements.corrections.get(pk, ())
        inputs = orjson.loads(example.inputs_text)
        metadata = orjson.loads(example.metadata_text)
        right_answer = example.consensus__label
        if not right_answer:
            right_answer = self._find_right_answer(example, inputs, outputs, corrections)
        label = to_text(right_answer)
        input_fields = pick(inputs, self._input)
        seconds = None
        if example.shown_at:
            elapsed = example.created_at - example.shown_at
            seconds = round(elapsed.total_seconds(), 1)
        row = {
            "uid": uid,
            "split": "",
            "task": self._round.task.code,
            "round": self._round.number,
            "anon_uid": self._pseudonym(
                "program" if example.by_program else "author", example.annotator_id
            ),
            "by_program": example.by_program,
            **self._contexts[example.context_id],
            "challenge": example.challenge,
            # Keys in one order, since JSON columns of PostgreSQL and SQLite return them in
            # different ones.
            "support_json": example.support_text and _sort_keys(example.support_text),
            "input_json": to_json(input_fields),
            "label": label,
            "validated": bool(example.consensus__is_verified),
            "decided_by": example.consensus__decided_by or "",
            "total_verified": example.consensus__votes or 0,
            "votes": [{"vote": v, "count": n} for v, n in _count_votes(votes).items()],
            "validations": votes,
            "corrections": corrections,
            "outcome": example.outcome,
            "model_wrong": MODEL_WRONG_BY_OUTCOME.get(example.outcome),
            **self._answers(outputs),
            "metadata_json": to_json(self._metadata(metadata, is_imported=bool(example.uid))),
            "generated_datetime": example.created_at.date().isoformat(),
            "time_elapsed": seconds,
            "parent_uid": parent and (example.parent__uid or format_uuid(parent)),
            "withdrawn": False,
        }
        if self._is_tagged:
            row["tags"] = judgements.tags.get(pk, ())
        if example.uid and not row["tag"]:  # an imported row brings a tag of its own
            row["tag"] = str(metadata.get("tag") or "")
        balanced_label = ""
        if self._balanced:
            balanced_label = choose_balanced_label(
                example.consensus__label, inputs.get(self._balanced)
            )
        fields = self._context_fields[example.context_id] | input_fields
        return FrozenRow(
            pk, uid, example.annotator_id, balanced_label, row["validated"], row, fields
        )

    def _metadata(self, metadata: Row, *, is_imported: bool) -> Row:
        """Return the metadata that may be published.

        These are the fields that the configuration asks for, or, for imported rows of a whole
        export, everything that does not name a person.
        """
        if self._is_whole and is_imported:
            return {
                name: value for name, value in metadata.items() if not PRIVATE_NAMES.search(name)
            }
        return pick(metadata, self._questions)

    def _find_right_answer(
        self, example: _Stored, inputs: Row, outputs: Sequence[Any], corrections: Sequence[Row]
    ) -> Any:
        """Return the author's answer, or the model's if authors give none and it is right.

        If the model's answer was found wrong, return what most validators typed. Otherwise return
        "".
        """
        if self._answer in inputs:
            return inputs[self._answer]
        if example.outcome == Example.Outcome.NOT_FOOLED:
            return orjson.loads(outputs[0][3]).get(self._answer, "") if outputs else ""
        is_wrong = example.outcome == Example.Outcome.FOOLED and example.consensus__is_verified
        if not is_wrong:
            return ""
        return next(iter(right_answers(corrections)), "")

    def _answers(self, outputs: Sequence[Any]) -> Row:
        """Return the columns of the targets' answers.

        Dynabench's two columns are those of the first target.
        """
        targets = []
        for _, version, is_fooled, output, prob in outputs:
            name, digest = self._versions[version]
            answer, probs = orjson.loads(output), prob and orjson.loads(prob)
            if probs:
                answer = {**answer, "prob": probs}
            about = {"name": name, "version": digest}
            targets.append({**about, "output_json": to_json(answer), "fooled": is_fooled})
        first_target = targets[0] if targets else {"name": None, "output_json": None}
        return {
            "model_endpoint_name": first_target["name"],
            "output_json": first_target["output_json"],
            "targets": targets,
        }


def _read_outputs(ids: Sequence[int]) -> Mapping[int, Sequence[Any]]:
    """Return the targets' answers by example id, in the targets' order."""
    outputs: dict[int, list[Any]] = defaultdict(list)
    rows = TargetOutput.objects.filter(example__gte=ids[0], example__lte=ids[-1])
    rows = rows.order_by("example_id", "position").annotate(**make_json_texts("output", "prob"))
    columns = ("example_id", "version_id", "fooled", "output_text", "prob_text")
    for row in read_as_stored(rows.values_list(*columns)):
        outputs[row[0]].append(row)
    return outputs


def pick(values: Mapping[str, Any], names: Iterable[str]) -> Row:
    """Return the entries with these names that the mapping contains, in the order of the names."""
    return {name: values[name] for name in names if name in values}


def read_as_stored(rows: QuerySet[Any, Any]) -> list[Any]:
    """Read rows of `values_list` without Django's slow conversion of each value.

    On SQLite, a UUID is then text, and a time is UTC without a time zone.
    """
    # `values_list` would convert each of a million dates and ids, only for us to write texts.
    sql, values = rows.query.sql_with_params()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def format_uuid(stored_value: UUID | str) -> str:
    """Return a UUID in its usual text form, from the value that the database holds."""
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


def to_text(value: Any) -> str:
    """Return a value as people read it: a text or label, the words of a span, otherwise JSON."""
    # A span: its place says nothing to readers.
    if isinstance(value, Mapping) and "text" in value:
        value = value["text"]
    return value if isinstance(value, str) else to_json(value)


def _sort_keys(text: str) -> str:
    """Return the JSON with its keys in a fixed order, whatever order the database returns."""
    return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()


def to_json(value: Any) -> str:
    """Return compact JSON, as in a JSONL file."""
    return orjson.dumps(value).decode()
