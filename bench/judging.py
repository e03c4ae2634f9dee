"""One cycle of judging over HTTP: the POST of an answer, which stores it and brings the next item.

The site is a real one (gunicorn, sessions, CSRF). The people answer what their page shows, each on
a connection that is kept. In turn with them the same people POST to the least view that Django can
have behind the same middleware: it reads one row and inserts one.

    python -m bench.judging --quick
    python -m bench.judging --database postgres --json
    python -m bench.judging --pace --quick

`--pace` measures how long eight people wait between a key and the next item instead: at a person's
pace, and without a pause. The site is then as `./run` starts it: one web process, SQLite.
"""

import http.client
import json
import random
import re
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.command import add_origin, build_parser
from bench.prepared import prepare_site, run_python_here, serve_web_here, set_up_site_here
from bench.site import (
    TICKS,
    build_environment,
    open_database,
    read_cpu_seconds,
    run_python,
    serve_web,
)

PEOPLE_COUNTS = (1, 8)
PAUSE_SECONDS = 1.5  # of a person between an item and their key, on the mean
MAX_IDLE_SECONDS = 1.8  # a connection that is idle longer is made again; the server closes it at 2
SETUP = """
import sys
from django.conf import settings
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from annotation.models import Example
from core.accounts.models import Annotator, User, confirm_address
from core.accounts.services import get_annotator
from tasks.models import Task
from tasks.services import install_official_tasks
install_official_tasks()
task = Task.objects.get(code="nli")
task.config_text = task.config_text.replace("limits: {", "limits: {share_of_votes: 0.99, ")
task.save()
task.rounds.update(state="open")
round = task.rounds.get()
context = round.contexts.first()
authors = Annotator.objects.bulk_create(Annotator(source="import") for _ in range(20))
Example.objects.bulk_create(
    [Example(round=round, context=context, annotator=authors[n % 20], digest=str(n),
             inputs={"hypothesis": f"Statement {n} of the bench.", "label": "neutral"},
             outcome="fooled") for n in range(int(sys.argv[1]))], batch_size=1000)
print(Example.objects.first().uuid)
for number in range(8):
    user = User.objects.create_user(f"bench{number}@example.com")
    confirm_address(user)
    get_annotator(user)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    print(session.session_key)
"""


@dataclass
class Figures:
    """What one run of a few seconds found."""

    cycles: int
    failed: int
    seconds: float
    cpu_seconds: float
    latencies: list[float] = field(repr=False)

    def figures(self) -> dict[str, float]:
        enough = self.latencies if len(self.latencies) > 1 else 2 * (self.latencies or [0.0])
        steps = statistics.quantiles(enough, n=20)
        return {
            "per_second": self.cycles / self.seconds,
            "cpu_ms": 1000 * max(self.cpu_seconds, 1 / TICKS) / max(1, self.cycles),
            "p50_ms": 1000 * steps[9],
            "p95_ms": 1000 * steps[-1],
            "failed": self.failed,
        }


class Person:
    """A browser that is signed in, with the page that it shows."""

    def __init__(self, port: int, session: str, minimal_example: str) -> None:
        self._site = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._cookies = {"sessionid": session}
        self._minimal = minimal_example
        self.page = ""

    def _ask(self, method: str, path: str, **form: str) -> str:
        """The answer's text; raises RuntimeError when it is not 200."""
        headers = {"Cookie": "; ".join(f"{n}={value}" for n, value in self._cookies.items())}
        if form:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "HX-Request": "true"}
        self._site.request(method, path, urllib.parse.urlencode(form) if form else None, headers)
        answer = self._site.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name] = value
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {text[:200]}")
        return text

    def reconnect(self) -> None:
        """On a new connection: the server closes those that were idle for two seconds."""
        self._site.close()

    def sit_down(self) -> None:
        """Open the judge page."""
        self.page = self._ask("GET", "/t/nli/judge/")

    def judge(self) -> bool:
        """Answer the example on the page; whether the next one came with the answer."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page)
        example = re.search(r'name="example" value="([^"]+)"', self.page)
        if not token or not example:
            return False
        form = {"example": example[1], "answer": "label:neutral", "csrfmiddlewaretoken": token[1]}
        before, self.page = example[1], self._ask("POST", "/t/nli/judge/", **form)
        after = re.search(r'name="example" value="([^"]+)"', self.page)
        return "Saved." in self.page and after is not None and after[1] != before

    def minimal(self) -> bool:
        """The same form to the minimal view."""
        token = self._cookies.get("csrftoken", "")
        form = {"example": self._minimal, "answer": "label:neutral", "csrfmiddlewaretoken": token}
        return self._ask("POST", "/minimal/", **form).startswith("Saved")


def run_people(
    people: list[Person],
    step: str,
    seconds: float,
    pids: list[int],
    pause: float = 0,
    most: float = float("inf"),
) -> Figures:
    """All people do the step again and again; a step that failed is counted and told.

    pause: seconds between two steps, on the mean of an exponential distribution. most: steps of
    each person.
    """
    latencies: list[float] = []
    failed: list[bool] = []
    began = time.perf_counter()

    def work(person: Person) -> None:
        person.reconnect()
        done = 0
        while time.perf_counter() < began + seconds and done < most:
            done += 1
            waits = random.expovariate(1 / pause) if pause else 0
            time.sleep(waits)
            started = time.perf_counter()
            if waits > MAX_IDLE_SECONDS:
                person.reconnect()
            try:
                good = getattr(person, step)()
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                print(error)
                good = False
            if not good:
                failed.append(True)
                return
            latencies.append(time.perf_counter() - started)

    before = sum(map(read_cpu_seconds, pids))
    threads = [threading.Thread(target=work, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    used = sum(map(read_cpu_seconds, pids)) - before
    return Figures(len(latencies), len(failed), took, used, latencies)


@contextmanager
def open_judge_site_here(examples: int) -> Iterator[tuple[list[Person], int]]:
    """People before the judge page of a site in this process; and the process."""
    set_up_site_here()
    minimal, *sessions = run_python_here(SETUP, str(examples)).split()
    with serve_web_here() as (port, pid):
        people = [Person(port, session, minimal) for session in sessions]
        for person in people:
            person.sit_down()
        yield people, pid


@contextmanager
def open_judge_site(
    kind: str, seconds: float, processes: int
) -> Iterator[tuple[list[Person], int]]:
    """People before the judge page of a site with items for so many seconds; and its process."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(open_database(kind, home))
        env = build_environment(home, url)
        prepare_site(env)
        examples = int(1000 + 2 * 150 * seconds)
        minimal, *sessions = run_python(env, SETUP, str(examples)).split()
        port, pid = stack.enter_context(serve_web(env, processes))
        people = [Person(port, session, minimal) for session in sessions]
        for person in people:
            person.sit_down()
        for step in ("minimal", "judge"):  # each thread of the server opens its connection
            run_people(people, step, min(seconds, 5), [pid])
        if not url.startswith("sqlite"):  # what autovacuum does within a minute on any site
            run_python(
                env, "from django.db import connection; connection.cursor().execute('ANALYZE')"
            )
        yield people, pid


def measure_pace(kind: str, seconds: float, processes: int) -> dict[str, Any]:
    """Figures of all people at a person's pace, and without a pause."""
    with open_judge_site(kind, seconds + 5, processes) as (people, pid):
        pauses = {"at a person's pace": PAUSE_SECONDS, "without a pause": 0}
        found: dict[str, Any] = {
            name: run_people(people, "judge", seconds, [pid], pause).figures()
            for name, pause in pauses.items()
        }
    return found | {"ratios": {f"p95 ms {name}": one["p95_ms"] for name, one in found.items()}}


def measure_judge_cycle(kind: str, seconds: float, rounds: int, processes: int) -> dict[str, Any]:
    """Medians over the rounds, and ratios taken within a round."""
    with open_judge_site(kind, seconds * (rounds + 1), processes) as (people, pid):
        return measure_rounds(people, pid, seconds, rounds)


def measure_rounds(
    people: list[Person], pid: int, seconds: float, rounds: int, most: float = float("inf")
) -> dict[str, Any]:
    """Return the figures of these people. most: steps of each of them in a measurement."""
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for count in PEOPLE_COUNTS:
            for step in ("minimal", "judge"):
                results = run_people(people[:count], step, seconds, [pid], most=most).figures()
                found.setdefault(f"{step}, {count}", []).append(results)
    result: dict[str, Any] = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in found.items()
    }
    result["failed"] = sum(row["failed"] for rows in found.values() for row in rows)
    result["ratios"] = {}
    for count in PEOPLE_COUNTS:
        pairs = zip(found[f"judge, {count}"], found[f"minimal, {count}"], strict=True)
        ratios = [ours["cpu_ms"] / least["cpu_ms"] for ours, least in pairs]
        result["ratios"][f"judge / minimal CPU, {count}"] = statistics.median(ratios)
    return result


def main() -> None:
    parser = build_parser(__doc__, quick="two rounds of a second")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or an address")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, help="web processes; default: 2, of --pace 1")
    parser.add_argument("--pace", action="store_true", help="from key to next item")
    options = parser.parse_args()
    seconds, rounds = (1.0, 2) if options.quick else (options.seconds, options.rounds)
    if options.smoke:
        with open_judge_site_here(80) as (people, pid):
            results = measure_rounds(people, pid, 60, 1, most=2)
    elif options.pace:
        seconds = 15 if options.quick else 60
        results = measure_pace(options.database, seconds, options.processes or 1)
    else:
        results = measure_judge_cycle(options.database, seconds, rounds, options.processes or 2)
    results = add_origin(results, "django", "psycopg", "gunicorn", lower=results["ratios"])
    if options.json:
        print(json.dumps(results, indent=1))
    elif options.pace:
        print_pace(results)
    else:
        print_cycle(results)


def print_pace(results: dict[str, Any]) -> None:
    for name, one in results.items():
        if name.startswith(("at ", "without ")):
            print(f"{name:20} p50 {one['p50_ms']:6.1f} ms, p95 {one['p95_ms']:6.1f} ms")
    print("wanted at a person's pace: p95 at most 100 ms")


def print_cycle(results: dict[str, Any]) -> None:
    for name, ratio in results["ratios"].items():
        print(f"{name:32} {ratio:10.2f}   wanted at most 3.5")
    for people in PEOPLE_COUNTS:
        print(f"cycles a second, {people} people: {results[f'judge, {people}']['per_second']:.1f}")


if __name__ == "__main__":
    main()
