"""The task that history goes into, its people and its models."""

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
from core.text.words import alike_labels, label_of
from tasks.config.parsing import ConfigError
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.models import TargetModel, TargetVersion, Task
from tasks.services import create_imported_task
from validation.bulk_insert import Table
from validation.consensus.claims import find_label_field, is_about_model
from validation.consensus.consensus import Policy
from validation.imports.columns import KnownFields, NewFields
from validation.imports.config import MOST_LABELS, are_texts, created_config, in_order
from validation.imports.rows import HistoryRow

# Ids of people in memory; beyond that they are forgotten and looked up again.
MOST_REMEMBERED = 100_000


class ImportRefused(Exception):
    """Raised when the file cannot be imported; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an import. task, round, policy: if None, the rows and the task decide.

    owner: the email address of the owner of a created task; empty for the only superuser.
    judge: people judge the examples on the site. labels: the choices in a created task, in addition
    to the labels of the rows. is_free: answers in a created task are free texts.
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
    question: str = ""
    is_free: bool = False
    terms: Terms = UNKNOWN_TERMS
    actor: User | None = None
    dry_run: bool = False


def _owner(address: str) -> User:
    """Return the owner of a task to be created. Raises ImportRefused."""
    people = User.objects.filter(is_active=True)
    condition = {"email__iexact": address} if address else {"is_superuser": True}
    owners = list(people.filter(**condition))
    # Of several superusers nobody can tell whose the task is to be.
    if len(owners) != 1:
        why = f"There is no account {address}" if address else "A new task needs an owner"
        raise ImportRefused(f"{why}. Name one with --owner EMAIL.")
    return owners[0]


class ImportedTask:
    """A task, locked until the transaction ends. A created task is configured from its rows."""

    def __init__(self, code: str, options: Options):
        self._policy = options.policy
        self._created = False
        # A second import into the task waits until this one is stored or undone.
        task = Task.objects.select_for_update(no_key=True).filter(code=code).first()
        if task is None:
            task = self._create(code, options)
        if task.config.kind == "arena":
            raise ImportRefused(
                f"{code!r} is an arena, which has no examples. Use import_comparisons."
            )
        self.task = task
        self.field = task.config.answer_field
        self._is_span = task.config.component(self.field).type == "span"
        self._people: dict[str | None, int] = {}
        self._targets: dict[str, tuple[int, int]] = {}
        self._new_fields = NewFields(self.field)
        self._fields = (
            self._new_fields if self._created else KnownFields(task.config, is_strict=options.judge)
        )
        self._labels: set[str] = set()
        self._judge, self._offered = options.judge, options.labels
        own = task.config.component(self.field).values
        self.labels = tuple(self._offered if self._created else own)
        """What the rows' answers are spelled as; none where their task is still to be made."""
        self._terms = options.terms
        if self._offered and not self._created:
            self._check_offered()
        self._rows = self._claims = self._answers = 0
        self._most_votes = 0

    def _create(self, code: str, options: Options) -> Task:
        if not options.create:
            codes = ", ".join(Task.objects.values_list("code", flat=True).order_by("code"))
            raise ImportRefused(
                f"There is no task {code!r}. Tasks: {codes or 'none'}. Name one with --task, or "
                "make it with --create."
            )
        # For the time of the import; `finish` writes the one that fits all rows.
        text = created_config(code, {}, {}, (), options.policy, 0)
        try:
            task = create_imported_task(code, text, partial(_owner, options.owner))
        except Refused as error:
            raise ImportRefused(str(error)) from None
        self._created = True
        return task

    @property
    def renamed(self) -> Mapping[str, str]:
        """Return the columns whose fields have another name."""
        return self._fields.renamed

    @property
    def unknown(self) -> Mapping[str, int]:
        """Return the columns that are not fields of the task, and how many rows have them."""
        return self._fields.unknown

    def fitted(self, row: HistoryRow) -> HistoryRow:
        """Return the row with each column under the name of its field. Raises BadRow."""
        return self._fields.fitted(row)

    def inputs(self, row: HistoryRow) -> dict[str, Any]:
        """Return the author's inputs, with the author's label under the task's answer field."""
        self._rows += 1
        self._claims += row.author_label is not None
        self._answers += row.answer is not None
        if self._created:
            self._note(row)
        if row.author_label is None:
            return dict(row.input)
        return {**row.input, self.field: self._answer(row, row.author_label)}

    def _answer(self, row: HistoryRow, label: str) -> Any:
        """Return the answer in the form that the task stores.

        It is a span if the row gives the character of a context text at which the answer starts.
        """
        start = row.metadata.get(f"{self.field}_start")
        # The type itself, as `isinstance` takes true for a whole number.
        if self._is_span and type(start) is int and start >= 0:
            end = start + len(label)
            # Only where the text has it at this place; else it stays a plain answer.
            if any(isinstance(t, str) and t[start:end] == label for t in row.context.values()):
                return {"text": label, "start": start, "end": end}
        return label

    def _note(self, row: HistoryRow) -> None:
        self._most_votes = max(self._most_votes, len(row.votes))
        # More answers are free texts in any case, which need not be remembered.
        if len(self._labels) <= MOST_LABELS:
            row_labels = [row.author_label, row.answer and row.answer.label]
            self._labels |= {label for label in row_labels if label}
            self._labels |= {vote.label for vote in row.votes if vote.label}

    def people(self, rows: Sequence[HistoryRow]) -> Mapping[str | None, int]:
        """Return annotators by the ids in the rows; create missing ones."""
        workers: set[str] = set()
        for row in rows:
            workers |= {vote.worker for vote in row.votes if vote.worker is not None}
            if row.author is not None:
                workers.add(row.author)
        if len(self._people) > MOST_REMEMBERED:
            self._people.clear()
        names = {self.name_of(who): who for who in workers - self._people.keys()}
        if names:
            self._add_people(names)
        return self._people

    def name_of(self, who: str) -> str:
        """Return the pseudonym of a person."""
        # With the code, as the same id in another task's file is another person.
        return fitting(f"{self.task.code}:{who}", 40)

    def _add_people(self, names: Mapping[str, str]) -> None:
        ids_by_name = dict(
            Annotator.objects.filter(pseudonym__in=names).values_list("pseudonym", "pk")
        )
        new_names = [name for name in names if name not in ids_by_name]
        table = Table(Annotator, ("id", "pseudonym", "source"))
        # Ids first, as COPY returns none.
        ids = table.reserve(len(new_names))
        source = Annotator.Source.IMPORT
        table.insert((pk, name, source) for pk, name in zip(ids, new_names, strict=True))
        ids_by_name |= dict(zip(new_names, ids, strict=True))
        self._people |= {names[name]: pk for name, pk in ids_by_name.items()}

    def targets(self, rows: Iterable[HistoryRow]) -> Mapping[str, tuple[int, int]]:
        """Return the target and version of each model named in the rows; create missing ones."""
        for model in {row.answer.model for row in rows if row.answer} - self._targets.keys():
            target, _ = TargetModel.objects.get_or_create(
                task=self.task,
                name=_target_name(self.task.code, model),
                defaults={"adapter": "imported", "options": {"model": model}},
            )
            version, _ = TargetVersion.objects.get_or_create(target=target, digest="imported")
            self._targets[model] = target.pk, version.pk
        return self._targets

    def finish(self, *, is_free: bool) -> None:
        """Give a created task a configuration derived from its rows.

        is_free: the source says that the answers are free texts.
        """
        if self._created:
            self._configure(is_free and not self._offered)
        if self._judge:
            self._check_judgeable()

    def _check_offered(self) -> None:
        """Raise ImportRefused if an existing task has other labels than requested."""
        field = find_label_field(self.task.config)
        labels = [label.value for label in self.task.config.labels(field)] if field else []
        if any(label_of(label, labels) is None for label in self._offered):
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
        # Then the model's answers are what people judge.
        if about_model:
            lacking_count, name = self._rows - self._answers, "model_prediction"
        if lacking_count:
            raise ImportRefused(
                f"{lacking_count} of {self._rows} rows have no {name}, so there is nothing to "
                "judge in them. Add it, or name the labels that people choose from with "
                "--labels a,b,c."
            )

    def _configure(self, is_free: bool) -> None:
        if not (is_free or are_texts(self._labels)):
            self._refuse_alike()
        try:
            text = created_config(
                self.task.code,
                self._new_fields.of("context"),
                self._new_fields.of("input"),
                [*self._offered, *in_order(self._labels)],
                self._policy,
                self._most_votes,
                talks=self._new_fields.talks,
                about_model=self._judge and self._answers > 0 and not self._claims,
                is_free=is_free,
                terms=self._terms,
            )
        except ConfigError as error:
            raise ImportRefused(
                f"No configuration fits the rows of {self.task.code}: {error}. Make the task "
                "first, then import into it."
            ) from None
        # Only this column, of a task that nobody else has seen yet.
        Task.objects.filter(pk=self.task.pk).update(config_text=text)
        self.task.config_text = text

    def _refuse_alike(self) -> None:
        """Raise ImportRefused for different answers that would be equal as labels."""
        labels = [*dict.fromkeys([*self._offered, *sorted(self._labels)])]
        alike = next(alike_labels(labels), None)
        if alike is not None:
            place, earlier = alike
            raise ImportRefused(
                f"The answers {earlier!r} and {labels[place]!r} count as one label. Write them "
                "alike in the file, or name the labels with --labels a,b,c."
            )


def fitting(name: str, longest: int) -> str:
    """Return the name, shortened to `longest` characters with a digest if necessary."""
    if len(name) <= longest:
        return name
    # 17 characters are a hyphen and 16 of the digest.
    return f"{name[: longest - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _target_name(code: str, model: str) -> str:
    """Join the codes of a task and a model; no code contains the underscore between them."""
    name = f"{code}_{model}"
    if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    # 43 characters, a hyphen and 16 of the digest are 60, the longest name.
    return f"{slugify(name)[:43]}-{digest}"
