"""Writes of comparisons that were made elsewhere: a file as a whole, a person's id once."""

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
from validation.imports.task import fitting

BATCH_LINES = 1000
Key = tuple[str, str]
"""The id of a comparison, and the pseudonym of the person who made it."""
Choice = tuple[str, str, str]
"""The left model, the right model and the winner."""
OnBad = Callable[[int, str], None]
"""Called with the number of each bad line and the reason."""


@dataclass
class Summary:
    """The numbers of new, known and invalid comparisons in a file."""

    new: int = 0
    known: int = 0
    bad: int = 0


@transaction.atomic
def import_comparisons(
    *, lines: Iterable[bytes], code: str, create: bool, owner: str, on_bad: OnBad
) -> Summary:
    """Store the comparisons of a CSV file, except those whose id is already stored.

    create: create the task if it does not exist. owner: the email address of its owner; empty for
    the first superuser. on_bad: called for each line that cannot be stored.
    Locks the task. If a line cannot be stored, raises Refused after all such lines were reported;
    nothing is stored then.
    """
    run = _Import(_lock_arena(code, create, owner), on_bad)
    comparisons = read_comparisons(lines)
    # In batches, so that memory does not grow with the file.
    while batch := list(islice(comparisons, BATCH_LINES)):
        run.store(batch)
    # Raised after the whole file, so that all bad lines are reported at once.
    if run.summary.bad:
        raise Refused(
            f"{run.summary.bad} of the lines cannot be stored, so nothing was. Mend the file.",
            code="lines",
        )
    log(None, "comparisons.imported", run.task, count=run.summary.new)
    return run.summary


def _lock_arena(code: str, create: bool, owner: str) -> Task:
    """Return the locked arena; create it if `create` is set. Raises Refused."""
    # Of two imports the second waits, and then finds what the first one stored.
    # No key, so that votes, which only point at the task, need not wait.
    task = Task.objects.select_for_update(of=("self",), no_key=True).filter(code=code).first()
    if task is None:
        if not create:
            raise Refused(f"There is no task {code!r}. Make it with --create.", code="task")
        return _create_arena(code, owner)
    if task.config.kind != "arena":
        raise Refused(f"The task {code!r} is no arena.", code="task")
    return task


def _create_arena(code: str, owner: str) -> Task:
    """Create an arena and derive its name from its code. Raises Refused."""
    text = dump_yaml({"version": 1, "kind": "arena", "name": derive_title(code)})
    return create_imported_task(code, text, partial(_find_owner, owner))


def _find_owner(address: str) -> User | None:
    """Return the owner of a new arena. Raises Refused."""
    if address:
        return find_account(address)
    # The oldest, so that the choice does not depend on the order of the rows.
    return User.objects.filter(is_active=True, is_superuser=True).order_by("pk").first()


class _Import:
    """An import of one file into a locked task."""

    def __init__(self, task: Task, on_bad: OnBad):
        self.task, self.summary = task, Summary()
        self._on_bad = on_bad
        self._models = dict(task.contestants.values_list("name", "pk"))
        self._people: dict[str, int] = {}

    def store(self, batch: Sequence[ComparisonLine | LineError]) -> None:
        """Store the new comparisons of a batch; after an invalid line, only check them."""
        lines: dict[Key, ComparisonLine] = {}
        for line in batch:
            if isinstance(line, LineError):
                self._report_bad(line.line, line.message)
                continue
            key = line.id, self._pseudonym(line.worker)
            # The same line twice in a file is no mistake; another choice under one id is.
            first_line = lines.setdefault(key, line)
            if _build_choice(first_line) != _build_choice(line):
                reason = "`id`: an earlier line has it, with another comparison"
                self._report_bad(line.number, reason)
            elif first_line is not line:
                self.summary.known += 1
        new_lines = self._new_lines(lines)
        self.summary.new += len(new_lines)
        if new_lines and not self.summary.bad:
            self._add_models([line for _uid, line in new_lines])
            self._add_people([line for _uid, line in new_lines])
            Comparison.objects.bulk_create(self._row(uid, line) for uid, line in new_lines)

    def _report_bad(self, number: int, reason: str) -> None:
        self.summary.bad += 1
        self._on_bad(number, reason)

    def _new_lines(self, lines: dict[Key, ComparisonLine]) -> list[tuple[str, ComparisonLine]]:
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
                self._report_bad(line.number, "`id`: stored already, with another comparison")
        return new_lines

    def _read_stored(self, ids: set[str]) -> tuple[Counter[str], dict[Key, Choice]]:
        """Count the comparisons stored under each of these ids, and return each person's choice."""
        columns = ("uid", "voter__pseudonym", "left__name", "right__name", "winner")
        counts: Counter[str] = Counter()
        choices: dict[Key, Choice] = {}
        # First the uids as they are, then numbered ones (`id (2)`), a few more with each query,
        # for those ids of which all numbers so far were taken.
        numbers = range(1, 2)
        while ids:
            id_of_uid = {}
            for id in ids:
                for number in numbers:
                    id_of_uid[_number_uid(id, number)] = id
            stored = self.task.comparisons.filter(uid__in=list(id_of_uid)).values_list(*columns)
            for uid, pseudonym, left, right, winner in stored:
                counts[id_of_uid[uid]] += 1
                choices[id_of_uid[uid], pseudonym] = left, right, winner
            ids = {id for id in ids if counts[id] == numbers[-1]}
            # Growing steps, so that an id that a hundred people share needs few queries.
            numbers = range(numbers[-1] + 1, 2 * numbers[-1] + 8)
        return counts, choices

    def _pseudonym(self, worker: str) -> str:
        return fitting(f"{self.task.code}:{worker}", 40)

    def _add_models(self, lines: Sequence[ComparisonLine]) -> None:
        """Create the models that do not exist yet, in the order of their names."""
        names: set[str] = set()
        for line in lines:
            names.update((line.left, line.right))
        for name in sorted(names - self._models.keys()):
            self._models[name] = Contestant.objects.create(task=self.task, name=name).pk

    def _add_people(self, lines: Sequence[ComparisonLine]) -> None:
        """Create the people who do not exist yet, and store the ids of all in `self`."""
        names = {self._pseudonym(line.worker) for line in lines} - self._people.keys()
        source = Annotator.Source.IMPORT
        rows = [Annotator(pseudonym=name, source=source) for name in sorted(names)]
        # Those of an earlier import are there; the conflict leaves them as they are.
        Annotator.objects.bulk_create(rows, ignore_conflicts=True)
        annotators = Annotator.objects.filter(pseudonym__in=names)
        self._people |= dict(annotators.values_list("pseudonym", "pk"))

    def _row(self, uid: str, line: ComparisonLine) -> Comparison:
        return Comparison(
            task=self.task,
            uid=uid,
            voter_id=self._people[self._pseudonym(line.worker)],
            left_id=self._models[line.left],
            right_id=self._models[line.right],
            winner=line.winner,
        )


def _number_uid(uid: str, number: int) -> str:
    """Return the uid of the comparison by the first, second, … person under an id."""
    return uid if number == 1 else fitting(f"{uid} ({number})", MAX_CELL_CHARS)


def _build_choice(line: ComparisonLine) -> Choice:
    return line.left, line.right, line.winner
