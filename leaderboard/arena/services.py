"""Imports of comparisons made elsewhere; a file is stored completely or not at all."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from django.db import transaction

from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.errors import Refused
from leaderboard.arena.files import MAX_CELL_CHARS, ComparisonLine, read_comparisons
from leaderboard.models import Comparison, Contestant
from tasks.config.parsing import dump_yaml
from tasks.line_files import LineError
from tasks.models import Task
from tasks.services import create_imported_task, derive_title, find_account
from validation.imports.task import shorten_to_fit

BATCH_LINES = 1000
Key = tuple[str, str]
"""The id of a comparison, and the pseudonym of the person who made it."""
Choice = tuple[str, str, str]
"""The left model, the right model and the winner."""
BadLineCallback = Callable[[int, str], None]
"""Called with the number of each bad line and the reason."""


@dataclass
class Summary:
    """The numbers of new, known and invalid comparisons in a file."""

    new: int = 0
    known: int = 0
    bad: int = 0


@transaction.atomic
def import_comparisons(
    *, lines: Iterable[bytes], code: str, create: bool, owner: str, on_bad_line: BadLineCallback
) -> Summary:
    """Store the comparisons of a CSV file, except those that are already stored.

    create: create the task if it does not exist. owner: the email address of its owner; empty for
    the first superuser. on_bad_line: called for each line that cannot be stored.
    Locks the task. If a line cannot be stored, raises Refused after all such lines were reported;
    nothing is stored then.
    """
    comparison_import = _Import(_lock_arena(code, create, owner), on_bad_line)
    comparisons = read_comparisons(lines)
    # In batches, so that memory does not grow with the file.
    while batch := list(islice(comparisons, BATCH_LINES)):
        comparison_import.store_batch(batch)
    # Raised after the whole file, so that all bad lines are reported at once.
    if comparison_import.summary.bad:
        raise Refused(
            f"Nothing was stored, because {comparison_import.summary.bad} lines have errors. "
            "Fix the file.",
            code="lines",
        )
    log(None, "comparisons.imported", comparison_import.task, count=comparison_import.summary.new)
    return comparison_import.summary


def _lock_arena(code: str, create: bool, owner: str) -> Task:
    """Return the locked arena; create it if `create` is set. Raises Refused."""
    # A second import waits here, and then finds what the first one stored.
    # Without the key, so that votes, which only refer to the task, need not wait.
    task = Task.objects.select_for_update(of=("self",), no_key=True).filter(code=code).first()
    if task is None:
        if not create:
            raise Refused(f"The task {code!r} doesn't exist. Create it with --create.", code="task")
        return _create_arena(code, owner)
    if task.config.kind != "arena":
        raise Refused(f"The task {code!r} is not an arena.", code="task")
    return task


def _create_arena(code: str, owner: str) -> Task:
    """Create an arena and derive its name from its code. Raises Refused."""
    text = dump_yaml({"version": 1, "kind": "arena", "name": derive_title(code)})
    return create_imported_task(code, text, partial(_find_owner, owner))


def _find_owner(address: str) -> User | None:
    """Return the owner of a new arena; None without a superuser. Raises Refused."""
    if address:
        return find_account(address)
    # The oldest, so that the choice does not depend on the order of the rows.
    return User.objects.filter(is_active=True, is_superuser=True).order_by("pk").first()


class _Import:
    """An import of one file into a locked task."""

    def __init__(self, task: Task, on_bad_line: BadLineCallback):
        self.task, self.summary = task, Summary()
        self._on_bad = on_bad_line
        self._models = dict(task.contestants.values_list("name", "pk"))
        self._people: dict[str, int] = {}

    def store_batch(self, batch: Sequence[ComparisonLine | LineError]) -> None:
        """Store the new comparisons of a batch; after an invalid line, only check them."""
        lines: dict[Key, ComparisonLine] = {}
        for line in batch:
            if isinstance(line, LineError):
                self._report_bad_line(line.line, line.message)
                continue
            key = line.id, self._get_pseudonym(line.worker)
            # A repeated line is not a mistake, but a different choice with the same id is.
            first_line = lines.setdefault(key, line)
            if _build_choice(first_line) != _build_choice(line):
                reason = "`id`: used in an earlier line for a different comparison"
                self._report_bad_line(line.number, reason)
            elif first_line is not line:
                self.summary.known += 1
        new_lines = self._find_new_lines(lines)
        self.summary.new += len(new_lines)
        if new_lines and not self.summary.bad:
            self._add_models([line for _uid, line in new_lines])
            self._add_people([line for _uid, line in new_lines])
            Comparison.objects.bulk_create(self._build_row(uid, line) for uid, line in new_lines)

    def _report_bad_line(self, number: int, reason: str) -> None:
        self.summary.bad += 1
        self._on_bad(number, reason)

    def _find_new_lines(self, lines: dict[Key, ComparisonLine]) -> list[tuple[str, ComparisonLine]]:
        """Return the lines that are not stored yet, each with its uid.

        People may share an id, for example when several compare one pair; the second person's
        comparison gets the uid `id (2)`. A second comparison by the same person under one id is
        invalid.
        """
        counts, choices = self._read_stored({uid for uid, _pseudonym in lines})
        new_lines = []
        for key, line in lines.items():
            if key not in choices:
                counts[line.id] += 1
                new_lines.append((_number_uid(line.id, counts[line.id]), line))
            elif choices[key] == _build_choice(line):
                self.summary.known += 1
            else:
                self._report_bad_line(
                    line.number, "`id`: already stored for a different comparison"
                )
        return new_lines

    def _read_stored(self, model_ids: set[str]) -> tuple[Counter[str], dict[Key, Choice]]:
        """Return the number of comparisons stored under each id, and each person's choice."""
        columns = ("uid", "voter__pseudonym", "left__name", "right__name", "winner")
        counts: Counter[str] = Counter()
        choices: dict[Key, Choice] = {}
        # First the uids themselves, then numbered ones (`id (2)`), a few more with each query,
        # for ids whose numbers so far are all taken.
        numbers = range(1, 2)
        while model_ids:
            id_by_uid = {}
            for id in model_ids:
                for number in numbers:
                    id_by_uid[_number_uid(id, number)] = id
            stored_rows = self.task.comparisons.filter(uid__in=list(id_by_uid)).values_list(
                *columns
            )
            for uid, pseudonym, left, right, winner in stored_rows:
                counts[id_by_uid[uid]] += 1
                choices[id_by_uid[uid], pseudonym] = left, right, winner
            model_ids = {id for id in model_ids if counts[id] == numbers[-1]}
            # Growing steps, so that an id shared by a hundred people needs few queries.
            numbers = range(numbers[-1] + 1, 2 * numbers[-1] + 8)
        return counts, choices

    def _get_pseudonym(self, worker: str) -> str:
        return shorten_to_fit(f"{self.task.code}:{worker}", 40)

    def _add_models(self, lines: Sequence[ComparisonLine]) -> None:
        """Create the models that do not exist yet, in the order of their names."""
        names: set[str] = set()
        for line in lines:
            names.update((line.left, line.right))
        for name in sorted(names - self._models.keys()):
            self._models[name] = Contestant.objects.create(task=self.task, name=name).pk

    def _add_people(self, lines: Sequence[ComparisonLine]) -> None:
        """Create the people who do not exist yet, and note the ids of all people in the lines."""
        names = {self._get_pseudonym(line.worker) for line in lines} - self._people.keys()
        source = Annotator.Source.IMPORT
        rows = [Annotator(pseudonym=name, source=source) for name in sorted(names)]
        # Rows of an earlier import exist already; the conflict leaves them unchanged.
        Annotator.objects.bulk_create(rows, ignore_conflicts=True)
        annotators = Annotator.objects.filter(pseudonym__in=names)
        self._people |= dict(annotators.values_list("pseudonym", "pk"))

    def _build_row(self, uid: str, line: ComparisonLine) -> Comparison:
        return Comparison(
            task=self.task,
            uid=uid,
            voter_id=self._people[self._get_pseudonym(line.worker)],
            left_id=self._models[line.left],
            right_id=self._models[line.right],
            winner=line.winner,
        )


def _number_uid(uid: str, number: int) -> str:
    """Return the uid of the comparison by the first, second, … person under an id."""
    return uid if number == 1 else shorten_to_fit(f"{uid} ({number})", MAX_CELL_CHARS)


def _build_choice(line: ComparisonLine) -> Choice:
    return line.left, line.right, line.winner
