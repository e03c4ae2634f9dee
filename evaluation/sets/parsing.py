"""Files of evaluation sets, row by row: examples that fit a task's configuration, or what is wrong.

JSON lines (plain or gzip), CSV and Parquet; docs/owners.md describes the rows. Read as a stream:
what is kept of a row that was read is its uid. Nothing here knows the database.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotation.rules.secret import secret_of
from core.files.damage import damage_of
from core.text.words import composed, composed_value, gettext_noop
from evaluation.contract import MIB, SetRow
from tasks.config.components import Component
from tasks.config.parsing import nearest
from tasks.config.schema import TaskConfig
from tasks.config.values import check_value, kept_values
from tasks.contexts.files import TAG_LENGTH
from tasks.line_files import (
    MOST_PROBLEMS,
    BadRow,
    FileError,
    HopelessFile,
    LineError,
    Row,
    ending_of,
    read_jsonl,
    strict_json,
    unpacked_lines,
    unstorable,
)
from tasks.table_files import DELIMITERS, read_table
from validation.imports import rows as import_rows
from validation.rules.consensus import Policy, Vote, decide
from validation.rules.corrections import right_answers

MOST_ERRORS = 20
MOST_LINES = 5_000_000
LONGEST_LINE = 4 * MIB
UID_LENGTH = 200
EXTRAS = ("uid", "tag", "tags", "language", "challenge", "metadata", "input_id")
NESTED = ("context", "input", "inputs")
NO_ANSWER = gettext_noop("its votes agree on no answer")
WITHDRAWN = gettext_noop("it was withdrawn")


@dataclass(frozen=True)
class LeftOut:
    """A row that is not wrong, but no example either."""

    line: int
    reason: str


class WrongLines(FileError):
    """Lines cannot be stored, so nothing is; `errors` names the first of them."""

    def __init__(self, errors: list[LineError]) -> None:
        super().__init__(errors)  # so that it can be pickled
        self.errors = errors

    def __str__(self) -> str:
        first = f"line {self.errors[0].line}: {self.errors[0].message}"
        more = f" ({len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
        return f"{first}{more}"


@dataclass
class SetFile:
    """The examples of a file on this machine; its name's end says the format, or `.gz` after it.

    Iterating reads it once from the start, and fills `errors` and `left_out` (reason: rows).
    """

    path: Path
    name: str
    config: TaskConfig
    skip_bad: bool = False
    errors: list[LineError] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[SetRow]:
        """Each example. At MOST_ERRORS, or at the end, wrong lines raise WrongLines.

        skip_bad: wrong lines are left out instead, up to MOST_PROBLEMS. Raises FileError where
        nothing can be read.
        """
        self.errors, self.left_out = [], {}
        wrong = 0
        for item in read_set(self.path, self.name, self.config):
            if isinstance(item, SetRow):
                yield item
            elif isinstance(item, LeftOut):
                self.left_out[item.reason] = self.left_out.get(item.reason, 0) + 1
            else:
                wrong += 1
                self.errors += [item] if len(self.errors) < MOST_ERRORS else []
                if wrong == MOST_PROBLEMS:
                    raise HopelessFile(item.line, item.message)
                if not self.skip_bad and len(self.errors) == MOST_ERRORS:
                    break
        if self.errors and not self.skip_bad:
            raise WrongLines(self.errors)


def read_set(path: Path, name: str, config: TaskConfig) -> Iterator[SetRow | LineError | LeftOut]:
    """Each row of the file in order: good, bad or left out. Raises FileError."""
    if files := [name for name in config.model_fields if name in config.media_fields]:
        raise FileError(
            f"Models of this task read pictures or recordings ({', '.join(files)}), which no such "
            "file holds. Its rounds and releases become sets."
        )
    maker = RowMaker(config)
    seen: dict[str, int] = {}
    for row in _rows(path, name, maker):
        if isinstance(row, LineError):
            yield row
            continue
        try:
            made = maker.from_file(row.values)
        except BadRow as error:
            yield LineError(row.line, str(error))
            continue
        if isinstance(made, str):
            yield LeftOut(row.line, made)
        elif made.uid in seen:
            same = "example" if row.values.get("uid") is None else "uid"
            yield LineError(
                row.line,
                f"the same {same} as line {seen[made.uid]} (`uid` {made.uid}); remove one of the "
                "two, or give each example a uid of its own",
            )
        else:
            seen[made.uid] = row.line
            yield made


class RowMaker:
    """Makes examples of a task's rows, wherever they come from."""

    def __init__(self, config: TaskConfig) -> None:
        self._model = [_unbounded(config.component(name)) for name in config.model_fields]
        self._answer = _unbounded(config.component(config.answer_field))
        self._has_secrets = config.verdict.type == "secret"
        self._slices = config.slices
        self._policy = Policy.from_votes(config.validation.votes)
        parts = (*config.context, *config.input, *config.output)
        self.parts: Mapping[str, Component] = {part.name: part for part in parts}
        self.known = (*self.parts, *(name for name in EXTRAS if name not in self.parts))

    def make(
        self,
        fields: Mapping[str, Any],
        *,
        answer: Any,
        uid: Any = None,
        tags: Any = None,
        language: Any = None,
        challenge: Any = None,
    ) -> SetRow:
        """An example of its fields by name; `uid` None: made of what the model reads.

        answer: one that is right, or a list of such; of an attack on a secret there is none. Raises
        BadRow with all that is wrong.
        """
        problems: list[str] = []
        inputs = {}
        texts = [value for value in fields.values() if isinstance(value, str)]
        fields = kept_values(self.parts.values(), composed_value(fields, texts))
        answer = composed_value(answer, texts)
        for part in self._model:
            value = fields.get(part.name)
            if _is_empty(value):
                problems += [f"`{part.name}` is missing; add it"] if part.required else []
            else:
                inputs[part.name] = value
                problems += _problems(part, value, fields)
        if self._has_secrets and secret_of(inputs) is None:
            problems.append("no turn of the conversation has a `secret`; add it to the first")
        if self._has_secrets and _is_empty(answer):
            gold: tuple[Any, ...] = ()  # any answer that keeps the secret is right
        else:
            gold = _gold(self._answer, answer, fields, problems)
        extras = {
            "tag": _tags(tags, problems),
            "language": _said(language),
            "challenge": _said(challenge),
        }
        slices = self._slices_of(fields, gold, extras)
        uid = _uid(uid, inputs, problems)
        lists = [[*values] for values in slices.values()]
        if not problems and (reason := unstorable([inputs, [*gold], uid, lists])):
            problems.append(reason)
        if problems:
            raise BadRow("; also: ".join(problems))
        return SetRow(uid, inputs, gold, slices)

    def from_file(self, row: Mapping[str, Any]) -> SetRow | str:
        """The example in a row of a file, or why it is left out. Raises BadRow."""
        if row.get("input_json") is not None:
            return self._released(row)
        if row.get("validations") is not None:
            return self._history(row)
        flat = _flat(row, self.parts)
        for name in flat:
            if name not in self.known:
                raise BadRow(f"there is no field `{name}`; {nearest(name, self.known)}")
        return self.make(
            flat,
            answer=flat.get(self._answer.name),
            uid=flat.get("uid"),
            tags=flat.get("tags") or flat.get("tag"),
            language=flat.get("language"),
            challenge=flat.get("challenge"),
        )

    def _released(self, row: Mapping[str, Any]) -> SetRow | str:
        """A row of a released dataset (docs/datasets.md)."""
        if row.get("withdrawn"):
            return WITHDRAWN
        context = _object(row.get("context"), "context")
        fields = {
            **_object(context.get("context_json", "{}"), "context_json"),
            **_object(row["input_json"], "input_json"),
        }
        return self.released(row, fields)

    def released(self, row: Mapping[str, Any], fields: Mapping[str, Any]) -> SetRow:
        """An example that people wrote, from a row of a release and its fields. Raises BadRow.

        Its label is what was agreed on. Where the author gave no answer, and the model's is wrong,
        every correction is right.
        """
        answer, own = row.get("label"), fields.get(self._answer.name)
        if self._has_secrets:
            answer = None
        elif self._answer.type != "multiclass" and (
            own is not None or not self._answer.kind.is_text
        ):
            answer = own
        elif self._answer.kind.is_text and row.get("model_wrong"):
            answer = right_answers(row.get("corrections") or []) or answer
        extras = {"tags": row.get("tag") or None, "challenge": row.get("challenge")}
        return self.make(fields, answer=answer, uid=row.get("uid"), **extras)

    def _history(self, row: Mapping[str, Any]) -> SetRow | str:
        """A row of imported history (docs/operators.md): what its votes agree on is right.

        Where there are too few votes to agree or not, it is what the author meant.
        """
        read = import_rows.parse_line(json.dumps(row, default=str).encode())
        read = import_rows.spelled_row(read, self._answer.values)
        votes = (Vote(vote.label or None, vote.verdict or None) for vote in read.votes)  # type: ignore[arg-type]
        decision = decide(votes, self._policy)
        answer = decision.label
        if decision.verdict == "correct" or decision.state == "undecided":
            answer = read.author_label
        if answer is None:
            return NO_ANSWER
        fields = {**read.context, **read.input}
        answer = None if self._has_secrets else answer
        return self.make(fields, answer=answer, uid=read.uid, tags=read.metadata.get("tags"))

    def _slices_of(
        self,
        fields: Mapping[str, Any],
        gold: Iterable[Any],
        extras: Mapping[str, tuple[str, ...]],
    ) -> dict[str, tuple[str, ...]]:
        found = {}
        for name in self._slices:
            if name == self._answer.name:
                values = _said(next(iter(gold), None))
            elif name in self.parts:
                values = _said(fields.get(name))
            else:
                values = extras[name]
            if values:
                found[name] = tuple(dict.fromkeys(value[:TAG_LENGTH] for value in values))
        return found


def _rows(path: Path, name: str, maker: RowMaker) -> Iterator[Row | LineError]:
    """The rows of a file as they stand there. Raises FileError."""
    ending = ending_of(name)
    if ending in ("jsonl", "ndjson"):
        return read_jsonl(_lines(path))
    if ending in DELIMITERS:
        return read_table(
            _lines(path),
            lambda cells: _header(cells, maker),
            lambda name, cell: _cell(name, cell, maker),
            ending,
        )
    if ending == "parquet":
        return _read_parquet(path)
    raise FileError(
        f"{name}: name the file .jsonl, .jsonl.gz, .csv, .tsv or .parquet, after its format."
    )


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a plain or gzip file. Raises FileError for one that has no end."""
    with path.open("rb") as file:
        for number, line in enumerate(unpacked_lines(file, LONGEST_LINE), 1):
            if len(line) == LONGEST_LINE:
                raise FileError(f"Line {number} has more than {LONGEST_LINE // MIB} MiB.")
            if number > MOST_LINES:
                raise FileError(f"There are more than {MOST_LINES:,} lines; make two sets.")
            yield line


def _read_parquet(path: Path) -> Iterator[Row]:
    """Rows of a Parquet file, numbered from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=500):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
    except MemoryError:  # Arrow's own is an ArrowException too
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise FileError(f"Not Parquet after row {number}: {damage_of(error)}.") from None


def _header(cells: list[str], maker: RowMaker) -> list[str]:
    """The names in the first line; raises BadRow."""
    names = [cell.strip() for cell in cells]
    for name in names:
        if name not in maker.known:
            raise BadRow(f"there is no field `{name}`; {nearest(name, maker.known)}")
        if names.count(name) > 1:
            raise BadRow(f"the column `{name}` is there twice; remove one of the two")
    return names


def _cell(name: str, cell: str, maker: RowMaker) -> Any:
    """A cell as a value: text, a number, or JSON of a list or an object."""
    part = maker.parts.get(name)
    if part and part.kind.is_text and name != "tags":
        return cell
    as_json = part and (part.kind.cell == "number" or part.kind.is_list(part))
    as_json = as_json or cell.lstrip().startswith(("[", "{"))
    return strict_json(cell) if as_json else cell


def _flat(row: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """The row's fields and those within its `context` and `input`, side by side."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in NESTED and name not in own:
            if not isinstance(value, Mapping):
                raise BadRow(f'`{name}` is not an object; write {{"field": "value"}}')
            part = value
        else:
            part = {name: value}
        for key in part:
            if key in flat:
                raise BadRow(f"`{key}` is there twice; remove one of the two")
        flat |= part
    return flat


def _object(value: Any, name: str) -> Mapping[str, Any]:
    """An object, or JSON text of one, as files of a release have it."""
    if isinstance(value, str):
        value = strict_json(value)
    if not isinstance(value, Mapping):
        raise BadRow(f"`{name}` is not an object; take the row as it was released")
    return value


def _unbounded(part: Component) -> Component:
    """The part without its lengths, which are for people who write."""
    return part.model_copy(update={"min_length": None, "max_length": None})


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {}) or (isinstance(value, str) and not value.strip())


def _problems(part: Component, value: Any, fields: Mapping[str, Any]) -> list[str]:
    return [f"`{part.name}`: {message}" for message in check_value(part, value, fields)]


def _gold(
    part: Component, answer: Any, fields: Mapping[str, Any], problems: list[str]
) -> tuple[Any, ...]:
    """Every right answer; a span is its text alone, as models answer it."""
    many = isinstance(answer, list | tuple)
    if part.kind.is_list(part):  # a list is one answer; of lists, many
        many = many and bool(answer) and all(isinstance(item, list) for item in answer)
        empty = answer is None
    else:
        empty = _is_empty(answer) or (many and any(_is_empty(item) for item in answer))
    if empty:
        problems.append(f"`{part.name}` is missing; add the right answer")
        return ()
    values = tuple(part.kind.kept(part, one) for one in (answer if many else (answer,)))
    if part.type == "span":
        values = tuple(v.get("text") if isinstance(v, Mapping) else v for v in values)
        passage = fields.get(str(part.reference))
        for value in values:
            if not isinstance(value, str):
                problems.append(f"`{part.name}` is not a text; write its words")
            elif isinstance(passage, str) and value not in passage:
                problems.append(
                    f"`{part.name}`: “{value[:40]}” does not stand in `{part.reference}`; copy it "
                    "from there"
                )
        return values
    problems += [message for value in values for message in _problems(part, value, fields)]
    return values


def _tags(tags: Any, problems: list[str]) -> tuple[str, ...]:
    given = [] if tags is None else tags if isinstance(tags, list) else [tags]
    if not all(isinstance(tag, str) for tag in given):
        problems.append("`tag` is not a text; write it in quotes")
        return ()
    long = next((tag for tag in given if len(tag) > TAG_LENGTH), None)
    if long:
        problems.append(f"`tag` has {len(long)} characters; use at most {TAG_LENGTH}")
    return tuple(composed(tag) for tag in given if tag)


def _said(value: Any) -> tuple[str, ...]:
    """A value in words, or each of a list; nothing where there is none."""
    if _is_empty(value):
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    texts = (v.get("text", v) if isinstance(v, Mapping) else v for v in values)
    return tuple(composed(text) if isinstance(text, str) else json.dumps(text) for text in texts)


def _uid(uid: Any, inputs: Mapping[str, Any], problems: list[str]) -> str:
    if uid is None:
        return uid_of(inputs)
    if isinstance(uid, int) and not isinstance(uid, bool):
        uid = str(uid)
    if not isinstance(uid, str) or not 0 < len(uid) <= UID_LENGTH:
        problems.append(f"`uid` is no text of 1 to {UID_LENGTH} characters; shorten it or leave it")
        return ""
    return uid


def uid_of(inputs: Mapping[str, Any]) -> str:
    """The uid of an example that has none: a digest of what the model reads."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
