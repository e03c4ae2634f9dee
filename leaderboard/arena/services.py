"""Writes comparisons that were made elsewhere: all of a file or nothing, a person's id once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from django.db import transaction

from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.errors import Refused
from leaderboard.arena.files import LONGEST, ComparisonLine, read_comparisons
from leaderboard.models import Comparison, Contestant
from tasks.config.parsing import dump_yaml
from tasks.line_files import LineError
from tasks.models import Task
from tasks.services import account_of, make_imported, title_of
from validation.imports.task import fitting

BATCH = 1000
Key = tuple[str, str]
"""The id of a comparison, and the pseudonym of who made it."""
Choice = tuple[str, str, str]
OnBad = Callable[[int, str], None]
"""Called with the number of each bad line and the reason."""


@dataclass
class Summary:
    """How many comparisons of a file were new, known before and bad."""

    new: int = 0
    known: int = 0
    bad: int = 0


@transaction.atomic
def import_comparisons(
    *, lines: Iterable[bytes], code: str, create: bool, owner: str, on_bad: OnBad
) -> Summary:
    """Store the comparisons of a CSV file; with an id that is stored already they are left out.

    create: make the task if there is none. owner: the address of its owner; empty: the first
    superuser. Locks the task. Raises Refused, after all bad lines were told, when one cannot be
    stored; nothing is stored then.
    """
    run = _Import(_arena(code, create, owner), on_bad)
    found = read_comparisons(lines)
    while batch := list(islice(found, BATCH)):
        run.store(batch)
    if run.summary.bad:
        raise Refused(
            f"{run.summary.bad} of the lines cannot be stored, so nothing was. Mend the file.",
            code="lines",
        )
    log(None, "comparisons.imported", run.task, count=run.summary.new)
    return run.summary


def _arena(code: str, create: bool, owner: str) -> Task:
    """Return the arena, locked, or create it when `create` is set. Raises Refused."""
    task = Task.objects.select_for_update(of=("self",), no_key=True).filter(code=code).first()
    if task is None:
        if not create:
            raise Refused(f"There is no task {code!r}. Make it with --create.", code="task")
        return _create(code, owner)
    if task.config.kind != "arena":
        raise Refused(f"The task {code!r} is no arena.", code="task")
    return task


def _create(code: str, owner: str) -> Task:
    text = dump_yaml({"version": 1, "kind": "arena", "name": title_of(code)})
    return make_imported(code, text, partial(_owner, owner))


def _owner(address: str) -> User | None:
    """Return the owner of a new arena. Raises Refused."""
    if address:
        return account_of(address)
    return User.objects.filter(is_active=True, is_superuser=True).order_by("pk").first()


class _Import:
    """One run over one file, into a locked task."""

    def __init__(self, task: Task, on_bad: OnBad):
        self.task, self.summary = task, Summary()
        self._on_bad = on_bad
        self._models = dict(task.contestants.values_list("name", "pk"))
        self._people: dict[str, int] = {}

    def store(self, batch: Sequence[ComparisonLine | LineError]) -> None:
        """Store what is new of some lines; after a bad one they are only checked."""
        lines: dict[Key, ComparisonLine] = {}
        for line in batch:
            if isinstance(line, LineError):
                self._bad(line.line, line.message)
                continue
            key = line.id, self._pseudonym(line.worker)
            if _choice(lines.setdefault(key, line)) != _choice(line):
                self._bad(line.number, "`id`: an earlier line has it, with another comparison")
            elif lines[key] is not line:
                self.summary.known += 1
        fresh = self._fresh(lines)
        self.summary.new += len(fresh)
        if fresh and not self.summary.bad:
            self._add_models([line for _, line in fresh])
            self._add_people([line for _, line in fresh])
            Comparison.objects.bulk_create(self._row(uid, line) for uid, line in fresh)

    def _bad(self, number: int, reason: str) -> None:
        self.summary.bad += 1
        self._on_bad(number, reason)

    def _fresh(self, lines: dict[Key, ComparisonLine]) -> list[tuple[str, ComparisonLine]]:
        """Return the lines that are not stored yet, each with its uid.

        People may share an id, for example when several compare one pair; the second person's
        comparison gets the uid `id (2)`. Another comparison of the same person under an id is bad.
        """
        counts, said = self._stored({uid for uid, _ in lines})
        fresh = []
        for key, line in lines.items():
            if key not in said:
                counts[line.id] += 1
                fresh.append((_numbered(line.id, counts[line.id]), line))
            elif said[key] == _choice(line):
                self.summary.known += 1
            else:
                self._bad(line.number, "`id`: stored already, with another comparison")
        return fresh

    def _stored(self, ids: set[str]) -> tuple[Counter[str], dict[Key, Choice]]:
        """Count the comparisons stored under each of these ids, and return each person's choice."""
        parts = ("uid", "voter__pseudonym", "left__name", "right__name", "winner")
        counts: Counter[str] = Counter()
        said: dict[Key, Choice] = {}
        numbers = range(1, 2)
        while ids:
            uids = {_numbered(one, number): one for one in ids for number in numbers}
            stored = self.task.comparisons.filter(uid__in=list(uids)).values_list(*parts)
            for uid, who, left, right, winner in stored:
                counts[uids[uid]] += 1
                said[uids[uid], who] = left, right, winner
            ids = {one for one in ids if counts[one] == numbers[-1]}
            numbers = range(numbers[-1] + 1, 2 * numbers[-1] + 8)
        return counts, said

    def _pseudonym(self, worker: str) -> str:
        return fitting(f"{self.task.code}:{worker}", 40)

    def _add_models(self, lines: Sequence[ComparisonLine]) -> None:
        names = {name for line in lines for name in (line.left, line.right)}
        for name in sorted(names - self._models.keys()):
            self._models[name] = Contestant.objects.create(task=self.task, name=name).pk

    def _add_people(self, lines: Sequence[ComparisonLine]) -> None:
        names = {self._pseudonym(line.worker) for line in lines} - self._people.keys()
        source = Annotator.Source.IMPORT
        rows = [Annotator(pseudonym=name, source=source) for name in sorted(names)]
        Annotator.objects.bulk_create(rows, ignore_conflicts=True)
        found = Annotator.objects.filter(pseudonym__in=names)
        self._people |= dict(found.values_list("pseudonym", "pk"))

    def _row(self, uid: str, line: ComparisonLine) -> Comparison:
        return Comparison(
            task=self.task,
            uid=uid,
            voter_id=self._people[self._pseudonym(line.worker)],
            left_id=self._models[line.left],
            right_id=self._models[line.right],
            winner=line.winner,
        )


def _numbered(uid: str, number: int) -> str:
    """Return the uid of the comparison of the first, second, … person under an id."""
    return uid if number == 1 else fitting(f"{uid} ({number})", LONGEST)


def _choice(line: ComparisonLine) -> Choice:
    return line.left, line.right, line.winner
