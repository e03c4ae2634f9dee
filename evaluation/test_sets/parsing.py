"""Parse files of evaluation sets row by row, into examples that fit a task or errors.

Reads JSON lines (plain or gzip), CSV and Parquet; docs/owners.md describes the rows. Files are
streamed: of each row, only the uid stays in memory. Uses no database.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotation.verdict.secret import get_secret
from core.files.damage import describe_damage
from core.text.words import compose, compose_value, gettext_noop
from evaluation.contract import MIB, SetRow
from tasks.config.components import Component
from tasks.config.criteria import MAX_CRITERIA
from tasks.config.parsing import suggest_nearest
from tasks.config.schema import TaskConfig
from tasks.config.values import find_value_errors, normalise_values
from tasks.contexts.files import MAX_TAG_CHARS
from tasks.line_files import (
    MAX_PROBLEMS,
    BadRow,
    FileError,
    LineError,
    Row,
    TooManyBadLines,
    find_unstorable_reason,
    get_ending,
    iter_unpacked_lines,
    parse_strict_json,
    read_jsonl,
)
from tasks.table_files import DELIMITERS, read_table
from validation.consensus.consensus import Policy, Vote, decide_by_votes
from validation.consensus.corrections import list_right_answers
from validation.imports import rows as import_rows

MAX_ERRORS = 20
MAX_LINES = 5_000_000
MAX_LINE_BYTES = 4 * MIB
MAX_UID_CHARS = 200
EXTRA_FIELDS = ("uid", "tag", "tags", "language", "challenge", "metadata", "input_id")
NESTED_FIELDS = ("context", "input", "inputs")
# These follow a number of rows, so they have neither a subject nor a full stop.
NO_ANSWER_REASON = gettext_noop("the votes don't agree on an answer")
WITHDRAWN_REASON = gettext_noop("withdrawn")


@dataclass(frozen=True)
class SkippedRow:
    """A row that is skipped without being an error."""

    line: int
    reason: str


class InvalidLines(FileError):
    """Raised when a file has invalid lines, so that nothing is stored.

    `errors` lists the first of them.
    """

    def __init__(self, errors: list[LineError]) -> None:
        super().__init__(errors)  # so that it can be pickled
        self.errors = errors

    def __str__(self) -> str:
        # One error is enough to say what is wrong; the caller lists the others.
        first_error, more_count = self.errors[0], len(self.errors) - 1
        suffix = f" ({more_count} more)" if more_count else ""
        return f"line {first_error.line}: {first_error.message}{suffix}"


@dataclass
class SetFile:
    """A local file of examples. The name's ending, apart from `.gz`, states the format.

    Each iteration reads the file once from the start and fills `errors` and `left_out` (number of
    rows by reason).
    """

    path: Path
    name: str
    config: TaskConfig
    skip_bad: bool = False
    errors: list[LineError] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[SetRow]:
        """Yield each example. Raises InvalidLines after MAX_ERRORS invalid lines, or at the end.

        With `skip_bad`, invalid lines are skipped instead; after MAX_PROBLEMS of them,
        TooManyBadLines is raised. Raises FileError if the file cannot be read.
        """
        self.errors, self.left_out = [], {}
        invalid_count = 0
        for item in read_set(self.path, self.name, self.config):
            if isinstance(item, SetRow):
                yield item
            elif isinstance(item, SkippedRow):
                self.left_out[item.reason] = self.left_out.get(item.reason, 0) + 1
            else:
                invalid_count += 1
                if len(self.errors) < MAX_ERRORS:
                    self.errors.append(item)
                if invalid_count == MAX_PROBLEMS:
                    raise TooManyBadLines(item.line, item.message)
                if not self.skip_bad and len(self.errors) == MAX_ERRORS:
                    break
        if self.errors and not self.skip_bad:
            raise InvalidLines(self.errors)


def read_set(
    path: Path, name: str, config: TaskConfig
) -> Iterator[SetRow | LineError | SkippedRow]:
    """Yield each row of the file in order: an example, an error or a skipped row.

    Raises FileError.
    """
    media_fields = [name for name in config.model_fields if name in config.media_fields]
    if media_fields:
        names = ", ".join(media_fields)
        raise FileError(
            f"Models of this task read pictures or recordings ({names}), which such files can't "
            "contain. Its rounds and releases become sets."
        )
    maker = RowMaker(config)
    line_by_uid: dict[str, int] = {}
    for row in _read_rows(path, name, maker):
        if isinstance(row, LineError):
            yield row
            continue
        try:
            set_row = maker.build_from_file(row.values)
        except BadRow as error:
            yield LineError(row.line, str(error))
            continue
        if isinstance(set_row, str):
            yield SkippedRow(row.line, set_row)
        elif set_row.uid in line_by_uid:
            # Without its own uid, it is derived from the text, so equal uids are equal texts.
            duplicate_name = "example" if row.values.get("uid") is None else "uid"
            yield LineError(
                row.line,
                f"the same {duplicate_name} as line {line_by_uid[set_row.uid]} "
                f"(`uid` {set_row.uid}); remove one of the two, or give each example a uid of its "
                "own",
            )
        else:
            line_by_uid[set_row.uid] = row.line
            yield set_row


class RowMaker:
    """A factory that makes a task's examples from rows of any source."""

    def __init__(self, config: TaskConfig) -> None:
        self._model = [
            _drop_length_limits(config.get_component(name)) for name in config.model_fields
        ]
        self._answer = _drop_length_limits(config.get_component(config.answer_field))
        self._has_secrets = config.verdict.type == "secret"
        self._criteria: Component | None = None
        if config.verdict.type == "criteria":
            # As of lengths, the limit to the number is for writers.
            component = _drop_length_limits(config.get_component(config.verdict.field))
            self._criteria = component.model_copy(update={"max_criteria": MAX_CRITERIA})
        self._slices = config.slices
        self._policy = Policy.from_votes(config.validation.votes)
        components = (*config.context, *config.input, *config.output)
        self.parts: Mapping[str, Component] = {each.name: each for each in components}
        extras = [name for name in EXTRA_FIELDS if name not in self.parts]
        self.field_names = list(self.parts) + extras

    def make_row(
        self,
        fields: Mapping[str, Any],
        *,
        answer: Any,
        uid: Any = None,
        tags: Any = None,
        language: Any = None,
        challenge: Any = None,
    ) -> SetRow:
        """Return the example with the given fields and answer.

        Parameters
        ----------
        fields
            Values by field name, as in the configuration.
        answer
            The right answer, or a list of several. Attacks on a secret have none.
        uid
            The example's id. If None, the id is computed from the inputs.
        tags, language, challenge
            Values of slices that are not fields.

        Raises
        ------
        BadRow
            Lists all problems of the row.
        """
        problems: list[str] = []
        inputs = {}
        texts = [value for value in fields.values() if isinstance(value, str)]
        # In the form in which the site stores texts.
        fields = normalise_values(self.parts.values(), compose_value(fields, texts))
        answer = compose_value(answer, texts)
        for component in self._model:
            value = fields.get(component.name)
            if not _is_empty(value):
                inputs[component.name] = value
                problems += _find_problems(component, value, fields)
            elif component.required:
                problems.append(f"`{component.name}` is missing; add it")
        if self._has_secrets and get_secret(inputs) is None:
            problems.append("no turn of the conversation has a `secret`; add it to the first")
        if self._has_secrets and _is_empty(answer):
            gold: tuple[Any, ...] = ()  # empty if any answer that keeps the secret is right
        else:
            gold = _parse_gold(self._answer, answer, fields, problems)
        criteria = self._read_criteria(fields, problems)
        extras = {
            "tag": _parse_tags(tags, problems),
            "language": _read_texts(language),
            "challenge": _read_texts(challenge),
        }
        slices = self._list_slices(fields, gold, extras)
        uid = _parse_uid(uid, inputs, problems)
        if not problems:
            # Last, because it checks everything for texts that no database can store.
            slice_values = list(map(list, slices.values()))
            reason = find_unstorable_reason([inputs, list(gold), uid, slice_values, list(criteria)])
            if reason:
                problems.append(reason)
        if problems:
            raise BadRow("; also: ".join(problems))
        return SetRow(uid, inputs, gold, slices, criteria)

    def _read_criteria(
        self, fields: Mapping[str, Any], problems: list[str]
    ) -> tuple[Mapping[str, Any], ...]:
        """Return the row's criteria, which an LLM judge needs; empty if the task has none."""
        if self._criteria is None:
            return ()
        value = fields.get(self._criteria.name)
        if _is_empty(value):
            problems.append(f"`{self._criteria.name}` is missing; add the criteria")
            return ()
        problems += _find_problems(self._criteria, value, fields)
        return tuple(value) if isinstance(value, list) else ()

    def build_from_file(self, row: Mapping[str, Any]) -> SetRow | str:
        """Return the example in a file's row, or the reason for skipping the row. Raises BadRow."""
        # Each of the three layouts has a column that the others lack.
        if row.get("input_json") is not None:
            return self._build_from_release(row)
        if row.get("validations") is not None:
            return self._build_from_history(row)
        flat_row = _flatten(row, self.parts)
        for name in flat_row:
            if name not in self.field_names:
                raise BadRow(
                    f"there is no field `{name}`; {suggest_nearest(name, self.field_names)}"
                )
        return self.make_row(
            flat_row,
            answer=flat_row.get(self._answer.name),
            uid=flat_row.get("uid"),
            tags=flat_row.get("tags") or flat_row.get("tag"),
            language=flat_row.get("language"),
            challenge=flat_row.get("challenge"),
        )

    def _build_from_release(self, row: Mapping[str, Any]) -> SetRow | str:
        """Return the example in a row of a release, or the reason for skipping the row.

        docs/datasets.md describes the format.
        """
        if row.get("withdrawn"):
            return WITHDRAWN_REASON
        context = _parse_object(row.get("context"), "context")
        fields = {
            **_parse_object(context.get("context_json", "{}"), "context_json"),
            **_parse_object(row["input_json"], "input_json"),
        }
        return self.make_released_row(row, fields)

    def make_released_row(self, row: Mapping[str, Any], fields: Mapping[str, Any]) -> SetRow:
        """Return the example in a row of a release. Raises BadRow.

        The right answer is the label that people agreed on, or else the author's own answer. If
        there is no author's answer and the model was wrong, every correction counts as right.
        """
        answer, own_answer = row.get("label"), fields.get(self._answer.name)
        is_text = self._answer.kind.is_text
        # Votes choose only among labels. For other answers, the author's own is right.
        is_own_answer_right = self._answer.type != "multiclass" and (
            own_answer is not None or not is_text
        )
        if self._has_secrets:
            answer = None
        elif is_own_answer_right:
            answer = own_answer
        elif is_text and row.get("model_wrong"):
            answer = list_right_answers(row.get("corrections") or []) or answer
        extras = {"tags": row.get("tag") or None, "challenge": row.get("challenge")}
        return self.make_row(fields, answer=answer, uid=row.get("uid"), **extras)

    def _build_from_history(self, row: Mapping[str, Any]) -> SetRow | str:
        """Return the example in a row of imported history, or the reason for skipping the row.

        The right answer is the one its votes agree on. With too few votes to decide, it is the
        author's label. docs/operators.md describes the format.
        """
        # Via JSON, because the import reads lines and checks all their types.
        imported_row = import_rows.parse_line(json.dumps(row, default=str).encode())
        imported_row = import_rows.spell_row(imported_row, self._answer.values)
        votes = [Vote(vote.label or None, vote.verdict or None) for vote in imported_row.votes]  # type: ignore[arg-type]
        decision = decide_by_votes(votes, self._policy)
        answer = decision.label
        if decision.verdict == "correct" or decision.state == "undecided":
            answer = imported_row.author_label
        if answer is None:
            return NO_ANSWER_REASON
        fields = {**imported_row.context, **imported_row.input}
        tags = imported_row.metadata.get("tags")
        # With secrets, the right answer is in the rows, not in the votes.
        answer = None if self._has_secrets else answer
        return self.make_row(fields, answer=answer, uid=imported_row.uid, tags=tags)

    def _list_slices(
        self,
        fields: Mapping[str, Any],
        gold: Iterable[Any],
        extras: Mapping[str, tuple[str, ...]],
    ) -> dict[str, tuple[str, ...]]:
        slices = {}
        for name in self._slices:
            if name == self._answer.name:
                values = _read_texts(next(iter(gold), None))
            elif name in self.parts:
                values = _read_texts(fields.get(name))
            else:
                values = extras[name]
            if values:
                # A dict removes repetitions and keeps the order.
                slices[name] = tuple(dict.fromkeys(value[:MAX_TAG_CHARS] for value in values))
        return slices


def _read_rows(path: Path, name: str, maker: RowMaker) -> Iterator[Row | LineError]:
    """Yield the raw rows of a file, or a LineError for an unreadable one. Raises FileError."""
    ending = get_ending(name)
    if ending in ("jsonl", "ndjson"):
        return read_jsonl(_read_lines(path))
    if ending in DELIMITERS:
        return read_table(
            _read_lines(path),
            lambda cells: _parse_header(cells, maker),
            lambda name, cell: _parse_cell(name, cell, maker),
            ending,
        )
    if ending == "parquet":
        return _read_parquet(path)
    raise FileError(
        f"{name}: name the file .jsonl, .jsonl.gz, .csv, .tsv or .parquet, after its format."
    )


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzip file. Raises FileError for too long or too many lines."""
    with path.open("rb") as file:
        for number, line in enumerate(iter_unpacked_lines(file, MAX_LINE_BYTES), 1):
            # The reader cuts longer lines, so that a file without line ends cannot fill the memory.
            if len(line) == MAX_LINE_BYTES:
                raise FileError(f"Line {number} has more than {MAX_LINE_BYTES // MIB} MiB.")
            if number > MAX_LINES:
                raise FileError(f"There are more than {MAX_LINES:,} lines; make two sets.")
            yield line


def _read_parquet(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file, numbered from 1. Raises FileError for any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            # Small batches, because a row may contain a long passage.
            for batch in file.iter_batches(batch_size=500):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
    except MemoryError:  # Arrow's own is an ArrowException too
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, SystemError) as error:
        raise FileError(f"Not Parquet after row {number}: {describe_damage(error)}.") from None


def _parse_header(cells: list[str], maker: RowMaker) -> list[str]:
    """Return the column names of the first line. Raises BadRow for unknown and repeated names."""
    names = list(map(str.strip, cells))
    for name in names:
        if name not in maker.field_names:
            raise BadRow(f"there is no field `{name}`; {suggest_nearest(name, maker.field_names)}")
        if names.count(name) > 1:
            raise BadRow(f"the column `{name}` is there twice; remove one of the two")
    return names


def _parse_cell(name: str, cell: str, maker: RowMaker) -> Any:
    """Return a cell's value: the text itself, or a number, list or object parsed as JSON.

    A cell is parsed if its field needs it, or if it begins with a bracket and its field is not a
    text.
    """
    component = maker.parts.get(name)
    # In a text column, a cell such as 007 or [1] is a text.
    if component and component.kind.is_text and name != "tags":
        return cell
    is_json = cell.lstrip().startswith(("[", "{"))
    if component and (component.kind.cell_type == "number" or component.kind.is_list(component)):
        is_json = True
    return parse_strict_json(cell) if is_json else cell


def _flatten(row: Mapping[str, Any], field_names: Collection[str]) -> dict[str, Any]:
    """Return one mapping of the row's fields and of those nested in its `context` and `input`.

    field_names: the names of the task's fields, which may be `context` or `input` themselves.
    Raises BadRow if a name occurs twice, or if a nested value is not an object.
    """
    flat_row: dict[str, Any] = {}
    for name, value in row.items():
        if name in NESTED_FIELDS and name not in field_names:
            if not isinstance(value, Mapping):
                raise BadRow(f'`{name}` is not an object; write {{"field": "value"}}')
            fields = value
        else:
            fields = {name: value}
        for key in fields:
            if key in flat_row:
                raise BadRow(f"`{key}` is there twice; remove one of the two")
        flat_row |= fields
    return flat_row


def _parse_object(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value as an object, parsing it if it is JSON text, as in files of a release.

    Raises BadRow if it is something else.
    """
    if isinstance(value, str):
        value = parse_strict_json(value)
    if not isinstance(value, Mapping):
        raise BadRow(f"`{name}` is not an object; take the row as it was released")
    return value


def _drop_length_limits(component: Component) -> Component:
    """Return a copy of the component without length limits, which apply to writers only."""
    return component.model_copy(update={"min_length": None, "max_length": None})


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {}) or (isinstance(value, str) and not value.strip())


def _find_problems(component: Component, value: Any, fields: Mapping[str, Any]) -> list[str]:
    return [
        f"`{component.name}`: {message}" for message in find_value_errors(component, value, fields)
    ]


def _parse_gold(
    component: Component, answer: Any, fields: Mapping[str, Any], problems: list[str]
) -> tuple[Any, ...]:
    """Return all right answers. Adds the problems found to `problems`.

    A span is reduced to its text, because models answer with text.
    """
    # One right answer may be alone or in a list.
    is_several = isinstance(answer, list | tuple)
    if component.kind.is_list(component):  # a list is one answer; a list of lists is several
        is_several = is_several and bool(answer)
        is_several = is_several and all(isinstance(item, list) for item in answer)
        is_missing = answer is None
    else:
        is_missing = _is_empty(answer) or (is_several and any(map(_is_empty, answer)))
    if is_missing:
        problems.append(f"`{component.name}` is missing; add the right answer")
        return ()
    answers = answer if is_several else [answer]
    values = tuple(component.kind.normalise(component, item) for item in answers)
    if component.type == "span":
        return _parse_spans(component, values, fields, problems)
    for value in values:
        problems += _find_problems(component, value, fields)
    return values


def _parse_spans(
    component: Component, values: Iterable[Any], fields: Mapping[str, Any], problems: list[str]
) -> tuple[Any, ...]:
    """Return the texts of the spans. Adds the problems found to `problems`."""
    texts = tuple(value.get("text") if isinstance(value, Mapping) else value for value in values)
    passage = fields.get(str(component.reference))
    for text in texts:
        if not isinstance(text, str):
            problems.append(f"`{component.name}` is not a text; write its words")
        elif isinstance(passage, str) and text not in passage:
            problems.append(
                f"`{component.name}`: “{text[:40]}” does not appear in "
                f"`{component.reference}`; copy it from there"
            )
    return texts


def _parse_tags(tags: Any, problems: list[str]) -> tuple[str, ...]:
    if tags is None:
        return ()
    if not isinstance(tags, list):
        tags = [tags]
    if not all(isinstance(tag, str) for tag in tags):
        problems.append("`tag` is not a text; write it in quotes")
        return ()
    for tag in tags:
        if len(tag) > MAX_TAG_CHARS:
            problems.append(f"`tag` has {len(tag)} characters; use at most {MAX_TAG_CHARS}")
            break
    return tuple(compose(tag) for tag in tags if tag)


def _read_texts(value: Any) -> tuple[str, ...]:
    """Return a value, or each item of a list, as text; empty for an empty value."""
    if _is_empty(value):
        return ()
    texts = []
    for item in value if isinstance(value, list | tuple) else [value]:
        text = item.get("text", item) if isinstance(item, Mapping) else item  # of a span
        texts.append(compose(text) if isinstance(text, str) else json.dumps(text))
    return tuple(texts)


def _parse_uid(uid: Any, inputs: Mapping[str, Any], problems: list[str]) -> str:
    if uid is None:
        return compute_uid(inputs)
    if isinstance(uid, int) and not isinstance(uid, bool):  # True is also an int
        uid = str(uid)
    if not isinstance(uid, str) or not 0 < len(uid) <= MAX_UID_CHARS:
        problems.append(
            f"`uid` isn't a text of 1 to {MAX_UID_CHARS} characters; shorten it or leave it out"
        )
        return ""
    return uid


def compute_uid(inputs: Mapping[str, Any]) -> str:
    """Return the uid of an example without one of its own: a digest of its inputs."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    # Sorted keys, so that the order of inputs does not matter.
    return hashlib.sha256(text.encode()).hexdigest()[:20]
