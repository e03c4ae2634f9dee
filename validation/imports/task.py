"""The task into which history is imported, with its people and models."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.text import slugify

from annotation.models import Example
from core.accounts.models import Annotator, User
from core.errors import Refused
from core.text.words import find_label, iterate_alike_labels
from tasks.config.parsing import ConfigError
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.models import TargetModel, TargetVersion, Task
from tasks.services import create_imported_task
from validation.bulk_insert import Table
from validation.consensus.claims import find_label_field, is_about_model
from validation.consensus.consensus import Policy
from validation.imports.columns import KnownFields, NewFields
from validation.imports.config import MAX_LABELS, are_texts, create_config, sort_labels
from validation.imports.rows import HistoryRow

# The number of people's ids in memory; further ones are queried again.
MAX_REMEMBERED_PEOPLE = 100_000


class ImportRefused(Exception):
    """Raised when the file cannot be imported; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an import. task, round, policy: if None, the rows and the task decide.

    owner: the email address of the owner of a created task; empty for the only superuser.
    judge: people judge the examples on the site. labels: the choices in a created task, in addition
    to the labels of the rows. has_free_text: answers in a created task are free texts.
    step_labels: in a created task, people choose from them for each step of a conversation.
    question: the question whose answers are read, if a layout has several. terms: stored with the
    rows; a created task gets the licence and the citation. actor: the person in the log. dry_run:
    nothing is stored.
    """

    file_name: str
    task: str | None = None
    create: bool = False
    owner: str = ""
    round: int | None = None
    policy: Policy | None = None
    skip_bad: bool = False
    judge: bool = False
    labels: Sequence[str] = ()
    step_labels: Sequence[str] = ()
    question: str = ""
    has_free_text: bool = False
    terms: Terms = UNKNOWN_TERMS
    actor: User | None = None
    dry_run: bool = False


def _get_owner(address: str) -> User:
    """Return the account that will own a new task. Raises ImportRefused unless exactly one fits.

    address: if empty, the only superuser.
    """
    people = User.objects.filter(is_active=True)
    condition = {"email__iexact": address} if address else {"is_superuser": True}
    owners = list(people.filter(**condition))
    # With several superusers, it is unclear who should own the task.
    if len(owners) != 1:
        reason = f"There is no account {address}" if address else "A new task needs an owner"
        raise ImportRefused(f"{reason}. Name one with --owner EMAIL.")
    return owners[0]


class ImportedTask:
    """A task, locked until the transaction ends. A created task is configured from its rows."""

    def __init__(self, code: str, options: Options):
        self._policy = options.policy
        self._created = False
        # A second import into the task waits until this one is stored or undone.
        task = Task.objects.select_for_update(no_key=True).filter(code=code).first()
        if task is None:
            task = self._create_task(code, options)
        if task.config.kind == "arena":
            raise ImportRefused(
                f"{code!r} is an arena, which has no examples. Use import_comparisons."
            )
        self.task = task
        self.field = task.config.answer_field
        self._is_span = task.config.get_component(self.field).type == "span"
        self._people: dict[str | None, int] = {}
        self._targets: dict[str, tuple[int, int]] = {}
        self._new_fields = NewFields(self.field)
        self._fields = (
            self._new_fields if self._created else KnownFields(task.config, is_strict=options.judge)
        )
        self._labels: set[str] = set()
        self._judge, self._requested_labels = options.judge, options.labels
        own_labels = task.config.get_component(self.field).values
        self.labels = tuple(self._requested_labels if self._created else own_labels)
        """The labels whose spelling the rows' answers get; empty if a created task names none."""
        self._terms, self._step_labels = options.terms, options.step_labels
        if self._requested_labels and not self._created:
            self._check_requested_labels()
        if self._step_labels and not self._created:
            raise ImportRefused(
                "--steps is for a task that is made. Set validation.steps in the configuration of "
                f"{self.task.code}."
            )
        self._rows = self._claims = self._answers = 0
        self._most_votes = 0

    def _create_task(self, code: str, options: Options) -> Task:
        if not options.create:
            codes = ", ".join(Task.objects.values_list("code", flat=True).order_by("code"))
            raise ImportRefused(
                f"There is no task {code!r}. Tasks: {codes or 'none'}. Choose one with --task, "
                "or create it with --create."
            )
        # Only during the import; `finish` writes the one that fits all rows.
        text = create_config(code, {}, {}, (), options.policy, 0)
        try:
            task = create_imported_task(code, text, partial(_get_owner, options.owner))
        except Refused as error:
            raise ImportRefused(str(error)) from None
        self._created = True
        return task

    @property
    def renamed_columns(self) -> Mapping[str, str]:
        """Return the columns whose fields have another name."""
        return self._fields.renamed_columns

    @property
    def unknown_columns(self) -> Mapping[str, int]:
        """Return the columns that are not fields of the task, and how many rows have them."""
        return self._fields.unknown_columns

    def rename_columns(self, row: HistoryRow) -> HistoryRow:
        """Return the row with each column under the name of its field. Raises BadRow."""
        return self._fields.rename_columns(row)

    def build_inputs(self, row: HistoryRow) -> dict[str, Any]:
        """Return the author's inputs, with the author's label under the task's answer field.

        Also counts the row and notes its labels for the final configuration. So call it once for
        each row.
        """
        self._rows += 1
        self._claims += row.author_label is not None
        self._answers += row.answer is not None
        if self._created:
            self._note_labels(row)
        if row.author_label is None:
            return dict(row.input)
        return {**row.input, self.field: self._build_answer(row, row.author_label)}

    def _build_answer(self, row: HistoryRow, label: str) -> Any:
        """Return the answer in the form that the task stores.

        It is a span if the row gives the character of a context text at which the answer starts.
        """
        start = row.metadata.get(f"{self.field}_start")
        # Compares types, because `isinstance` accepts true as an integer.
        if self._is_span and type(start) is int and start >= 0:
            end = start + len(label)
            # Only if the text contains it at this position; otherwise it remains a plain answer.
            if any(
                isinstance(text, str) and text[start:end] == label for text in row.context.values()
            ):
                return {"text": label, "start": start, "end": end}
        return label

    def _note_labels(self, row: HistoryRow) -> None:
        self._most_votes = max(self._most_votes, len(row.votes))
        # With more answers they are free texts in any case, and need not be remembered.
        if len(self._labels) <= MAX_LABELS:
            row_labels = [row.author_label, row.answer and row.answer.label]
            self._labels |= {label for label in row_labels if label}
            self._labels |= {vote.label for vote in row.votes if vote.label}

    def get_or_create_people(self, rows: Sequence[HistoryRow]) -> Mapping[str | None, int]:
        """Return annotators by the ids in the rows; create missing ones."""
        workers: set[str] = set()
        for row in rows:
            workers |= {vote.worker for vote in row.votes if vote.worker is not None}
            if row.author is not None:
                workers.add(row.author)
        if len(self._people) > MAX_REMEMBERED_PEOPLE:
            self._people.clear()
        names = {
            self.get_name_of(person_name): person_name
            for person_name in workers - self._people.keys()
        }
        if names:
            self._add_people(names)
        return self._people

    def get_name_of(self, person_name: str) -> str:
        """Return the pseudonym under which a person of the rows is stored."""
        # With the code, because the same id in another task's file is another person.
        return shorten_to_fit(f"{self.task.code}:{person_name}", 40)

    def _add_people(self, names: Mapping[str, str]) -> None:
        ids_by_name = dict(
            Annotator.objects.filter(pseudonym__in=names).values_list("pseudonym", "pk")
        )
        new_names = [name for name in names if name not in ids_by_name]
        table = Table(Annotator, ("id", "pseudonym", "source"))
        # Ids first, because COPY returns none.
        ids = table.reserve_ids(len(new_names))
        source = Annotator.Source.IMPORT
        table.insert(
            (person_id, name, source) for person_id, name in zip(ids, new_names, strict=True)
        )
        ids_by_name |= dict(zip(new_names, ids, strict=True))
        self._people |= {names[name]: person_id for name, person_id in ids_by_name.items()}

    def get_or_create_targets(self, rows: Iterable[HistoryRow]) -> Mapping[str, tuple[int, int]]:
        """Return the target and version of each model named in the rows; create missing ones."""
        for model in {row.answer.model for row in rows if row.answer} - self._targets.keys():
            target, _ = TargetModel.objects.get_or_create(
                task=self.task,
                name=_build_target_name(self.task.code, model),
                defaults={"adapter": "imported", "options": {"model": model}},
            )
            version, _ = TargetVersion.objects.get_or_create(target=target, digest="imported")
            self._targets[model] = target.pk, version.pk
        return self._targets

    def finish(self, *, has_free_text: bool) -> None:
        """Give a created task a configuration derived from its rows.

        Also checks that the rows can be judged, if people are to judge them. has_free_text: the
        source says that the answers are free texts. Raises ImportRefused.
        """
        if self._created:
            self._configure_task(has_free_text and not self._requested_labels)
        if self._judge:
            self._check_judgeable()

    def _check_requested_labels(self) -> None:
        """Raise ImportRefused if an existing task lacks one of the requested labels."""
        field = find_label_field(self.task.config)
        labels = [label.value for label in self.task.config.get_labels(field)] if field else []
        if any(find_label(label, labels) is None for label in self._requested_labels):
            raise ImportRefused(
                f"--labels is for a task that is made. {self.task.code} has "
                f"{', '.join(labels) or 'no labels'}; leave it out."
            )

    def _check_judgeable(self) -> None:
        """Raise ImportRefused if the question to judges needs a value that a row lacks."""
        config = self.task.config
        if find_label_field(config):
            return
        about_model = is_about_model(config, Example.Outcome.UNKNOWN)
        lacking_count, name = self._rows - self._claims, "author_label"
        # In this case people judge the model's answers.
        if about_model:
            lacking_count, name = self._rows - self._answers, "model_prediction"
        if lacking_count:
            raise ImportRefused(
                f"{lacking_count} of {self._rows} rows have no {name}, so there is nothing to "
                "judge in them. Add it, or name the labels that people choose from with "
                "--labels a,b,c."
            )

    def _configure_task(self, has_free_text: bool) -> None:
        if self._step_labels and not self._new_fields.conversation_fields:
            raise ImportRefused(
                "--steps is for conversations, and the rows have none. Leave it out."
            )
        if not (has_free_text or are_texts(self._labels)):
            self._check_labels_differ()
        try:
            text = create_config(
                self.task.code,
                self._new_fields.get_columns("context"),
                self._new_fields.get_columns("input"),
                [*self._requested_labels, *sort_labels(self._labels)],
                self._policy,
                self._most_votes,
                conversation_fields=self._new_fields.conversation_fields,
                is_about_model=self._judge and self._answers > 0 and not self._claims,
                has_free_text=has_free_text,
                terms=self._terms,
                step_labels=self._step_labels,
            )
        except ConfigError as error:
            raise ImportRefused(
                f"No configuration fits the rows of {self.task.code}: {error}. Make the task "
                "first, then import into it."
            ) from None
        # Only this column; nobody else has seen the task yet.
        Task.objects.filter(pk=self.task.pk).update(config_text=text)
        self.task.config_text = text

    def _check_labels_differ(self) -> None:
        """Raise ImportRefused for different answers that would be equal as labels."""
        labels = [*dict.fromkeys([*self._requested_labels, *sorted(self._labels)])]
        equal_labels = next(iterate_alike_labels(labels), None)
        if equal_labels is not None:
            index, earlier_label = equal_labels
            raise ImportRefused(
                f"The answers {earlier_label!r} and {labels[index]!r} count as one label. Write "
                "them alike in the file, or name the labels with --labels a,b,c."
            )


def shorten_to_fit(name: str, max_chars: int) -> str:
    """Return the name, shortened to `max_chars` characters with a digest if necessary."""
    if len(name) <= max_chars:
        return name
    # 17 characters are a hyphen and 16 of the digest.
    return f"{name[: max_chars - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _build_target_name(code: str, model: str) -> str:
    """Return the name of an imported target: the codes of the task and the model.

    They are joined by an underscore, which no code contains. A longer or invalid name is shortened
    with a digest.
    """
    name = f"{code}_{model}"
    if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    # 43 characters, a hyphen and 16 of the digest are 60, the longest name.
    return f"{slugify(name)[:43]}-{digest}"
