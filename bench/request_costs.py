"""What the answer to each kind of request costs, in units of a fixed piece of work.

    python -m bench.request_costs --quick --json

A site in this process, on SQLite, is asked by Django's test client: all middleware, no network.
The unit is a loop of Python and SQLite that runs beside each request and that no change of the
product touches, so the figures of two commits on one machine can be compared. `python -m
bench.check` does that. See bench/README.md.
"""

import gc
import json
import random
import re
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import count
from typing import Any

from bench.collection import generate_lines, read_bare, read_counts
from bench.command import add_origin, build_parser
from bench.prepared import set_up_site_here

Request = Callable[[], object]


@dataclass(frozen=True)
class Size:
    """How much the site holds, and how long each request is measured."""

    examples: int  # that are reported and exported, with three votes each
    queued: int  # that wait for judges
    models: int  # on the board
    rounds: int
    seconds: float  # of each kind of request, in all rounds
    most: int  # times that a request is made in a round


WHOLE, QUICK = Size(5000, 2000, 200, 8, 4.0, 50), Size(800, 800, 40, 6, 0.25, 12)
SMOKE = Size(12, 6, 3, 1, 0, 2)
MIN_TIMES = 2
"""Times that a request is made at least in a round."""
BARE: dict[str, Callable[[Any], None]] = {"quick report": read_counts, "export": read_bare}
"""What is compared with bare statements on the same rows, not with the unit."""
ROWS = """{% for row in rows %}<li class="{% if row.is_even %}even{% else %}odd{% endif %}">
<a href="/{{ row.number }}/">{{ row.words|title|truncatechars:30 }}</a></li>{% endfor %}"""
LIMITS = "limits: {tries_per_context: 1000000, tries_per_day: 1000000, share_of_votes: 0.99}"


class Unit:
    """The fixed piece of work: some three milliseconds of a template, SQLite, JSON and text."""

    def __init__(self) -> None:
        from django.template import Context, Engine

        self._engine, self._context = Engine(), Context
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE TABLE one (a INTEGER PRIMARY KEY, b TEXT)")
        words = ((n, f"Customer {n} was inside before the rain began.") for n in range(200))
        self._database.executemany("INSERT INTO one VALUES (?, ?)", words)

    def __call__(self) -> None:
        for number in range(12):
            query = "SELECT a, b FROM one WHERE a >= ? LIMIT 40"
            found = self._database.execute(query, (number,)).fetchall()
            shown_rows = [
                {"number": a, "words": b.upper(), "is_even": a % 2 == 0} for a, b in found
            ]
            json.loads(re.sub(r"[AEIOU]+", "-", json.dumps(shown_rows)))
        self._engine.from_string(ROWS).render(self._context({"rows": shown_rows}))


class Site:
    """A task with an open round, one with a closed round, and people who are signed in."""

    def __init__(self, size: Size) -> None:
        from django.core.management import call_command
        from django.test import Client

        from core.accounts.models import User, confirm_address
        from tasks.models import Task
        from tasks.services import install_official_tasks

        install_official_tasks()
        self.people = [User.objects.create_user(f"p{n}@example.com") for n in range(2)]
        for person in self.people:
            confirm_address(person)
        self.client = Client(SERVER_NAME="localhost")
        self.client.force_login(self.people[0])
        self.closed = Task.objects.get(code="nli").rounds.get()
        self.closed.state = "closed"
        self.closed.save()
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(f"{line}\n" for line in generate_lines(size.examples, 3))
            file.flush()
            with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
                call_command("import_examples", file.name)
        self.open_round(size.queued)
        self.fill_board(size.models)

    def open_round(self, queued: int) -> None:
        """Let people write for a scripted target, and judge what others wrote."""
        from annotation.models import Example
        from core.accounts.models import Annotator
        from tasks.models import RoundTarget, TargetModel, Task

        task = Task.objects.get(code="sentiment")
        text = re.sub(r"^limits:.*?(?=^[a-z]|\Z)", "", task.config_text, flags=re.S | re.M)
        task.config_text = f"{text}\n{LIMITS}\n"
        task.save()
        task.rounds.update(state="open")
        self.open = round = task.rounds.get()
        target = TargetModel.objects.create(
            task=task, name="scripted", adapter="scripted", url="http://scripted.test",
            options={"label": "neutral"},
        )  # fmt: skip
        RoundTarget.objects.create(round=round, target=target)
        authors = Annotator.objects.bulk_create(Annotator(source="import") for _ in range(20))
        Example.objects.bulk_create(
            Example(
                round=round, context=round.contexts.first(), annotator=authors[n % 20],
                digest=str(n), outcome="fooled",
                inputs={"text": f"Customer {n} liked it.", "label": "positive"},
            )
            for n in range(queued)
        )  # fmt: skip

    def fill_board(self, models: int) -> None:
        """Publish models with scores on some sets, and make the first person an owner."""
        from django.db import transaction

        from bench.leaderboard import fill_board
        from leaderboard.board.services import freeze_rates
        from tasks.models import TaskMember

        with transaction.atomic():
            fill_board(self.closed.task, range(models), 4)
        freeze_rates(task=self.closed.task)
        TaskMember.objects.create(task=self.closed.task, user=self.people[0], role="owner")

    def get(self, path: str) -> str:
        """Return a page."""
        answer = self.client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answered {answer.status_code}.")
        return str(answer.content.decode())

    def post(self, path: str, **form: Any) -> str:
        """Return the part of a page that htmx asked for."""
        answer = self.client.post(path, form, HTTP_HX_REQUEST="true")
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answered {answer.status_code}: {answer.content[:300]!r}")
        return str(answer.content.decode())

    def requests(self) -> dict[str, Request]:
        """Return each kind of request by its name."""
        from evaluation.dataset_releases.reading import export_lines
        from validation.statistics.report import build_task_report

        board, names = "/t/nli/leaderboard/", count()
        example = self.open.examples.first()
        assert example
        return {
            "minimal view": lambda: self.post("/minimal/", example=example.uuid),
            "home": lambda: self.get("/"),
            "task page": lambda: self.get("/t/nli/"),
            "write page": lambda: self.get("/t/sentiment/write/"),
            "verdict": self.verdict(),
            "judge page": lambda: self.get("/t/sentiment/judge/"),
            "vote": self.vote(),
            "board": lambda: self.get(board),
            "board with other weights": lambda: self.get(f"{board}?w_accuracy={next(names) % 9}"),
            "my work": lambda: self.get("/me/"),
            "owner's dashboard": lambda: self.get("/own/nli/"),
            "API, a task": lambda: self.get("/api/v1/tasks/nli/"),
            "quick report": lambda: build_task_report([self.closed], code="nli"),
            "export": lambda: deque(export_lines(self.closed), maxlen=0),
        }

    def verdict(self) -> Request:
        """Submit one sentence after the other."""
        from annotation.context_picking.services import assign
        from core.accounts.services import get_annotator

        given = assign(annotator=get_annotator(self.people[0]), round=self.open)
        chance, words = random.Random(3), ["mill", "river", "bread", "storm", "quiet", "bright"]

        def submit() -> None:
            text = f"{' '.join(chance.choices(words, k=12))} {chance.random()}"
            form = {"attempt_key": uuid.uuid4(), "assignment": given.pk, "goal": given.goal}
            if "scripted" not in self.post("/t/sentiment/write/", text=text, **form):
                raise RuntimeError("An example got no verdict.")

        return submit

    def vote(self) -> Request:
        """Judge one item after the other; each answer brings the next item."""
        page = ""

        def judge() -> None:
            nonlocal page
            page = page or self.get("/t/sentiment/judge/")
            shown = re.search(r'name="example" value="([^"]+)"', page)
            if not shown:
                raise RuntimeError("Nothing is left to judge.")
            page = self.post("/t/sentiment/judge/", example=shown[1], answer="label:neutral")

        return judge


def read_core_wait() -> float:
    """Return the seconds that this thread has waited for a core; 0 where nobody counts them.

    What others wait while this one waits for them is left in: it is seldom, and more.
    """
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def measure_seconds(work: Request) -> float:
    """Return how long a piece of work takes, less what it waited for a core.

    So other programs on the machine hardly change it, and a sleep or a slow disk counts.
    """
    began, waited = time.perf_counter(), read_core_wait()
    work()
    waited = read_core_wait() - waited
    return time.perf_counter() - began - waited


def measure_costs(
    requests: Mapping[str, Request], units: Mapping[str, Request], size: Size
) -> dict[str, dict[str, float]]:
    """Return what each kind of request costs in its unit, which takes turns with it.

    All kinds are measured in several rounds, because a shared machine is slow for seconds at a
    time. The lower quartile counts: what is faster was no luck, what is slower may be.
    """
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in requests}
    for request in requests.values():
        request()  # it is warm
    for _ in range(size.rounds):
        for name, request in requests.items():
            spent, times = 0.0, 0
            while times < MIN_TIMES or (times < size.most and spent < size.seconds / size.rounds):
                seconds[name][1].append(measure_seconds(units[name]))
                took = measure_seconds(request)
                seconds[name][0].append(took)
                spent, times = spent + took, times + 1
    costs = {}
    for name, pair in seconds.items():
        ours, unit = (statistics.quantiles(one, n=4)[0] for one in pair)
        figures = {"times": len(pair[0]), "ms": 1000 * ours, "unit_ms": 1000 * unit}
        costs[name] = {**figures, "units": ours / unit}
    return costs


def measure(size: Size) -> dict[str, Any]:
    """Return the cost of each kind of request, and the ratios."""
    set_up_site_here(in_memory=True)
    site, unit = Site(size), Unit()
    gc.collect()
    gc.freeze()
    requests = site.requests()
    units = {name: partial(BARE[name], site.closed) if name in BARE else unit for name in requests}
    costs = measure_costs(requests, units, size)
    ratios = {
        f"{name} / {'bare' if name in BARE else 'unit'}": cost["units"]
        for name, cost in costs.items()
    }
    return {"ratios": ratios, "costs": costs}


def main() -> None:
    parser = build_parser(__doc__, quick="a smaller site, a third of a second for each request")
    args = parser.parse_args()
    results = measure(SMOKE if args.smoke else QUICK if args.quick else WHOLE)
    results = add_origin(results, "django", "numpy", lower=results["ratios"])
    if args.json:
        print(json.dumps(results, indent=1))
        return
    for name, one in results["costs"].items():
        print(f"{name:26} {one['ms']:8.1f} ms {one['units']:8.2f} {'bare' if name in BARE else ''}")


if __name__ == "__main__":
    main()
