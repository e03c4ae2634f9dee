"""One cycle of judging over HTTP: the POST of an answer, which stores it and brings the next item.

The site is a real one (gunicorn, sessions, CSRF). The people answer what their page shows, each on
a connection that is kept. In turn with them the same people POST to the least view that Django can
have behind the same middleware: it reads one row and inserts one.

    python -m bench.judging --quick
    python -m bench.judging --database postgres --json
"""

import argparse
import http.client
import json
import re
import statistics
import tempfile
import threading
import time
import urllib.parse
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import machine, versions
from bench.site import cpu_seconds, database, environment, manage, python, web

PEOPLE = (1, 8)
SETUP = """
import sys
from django.conf import settings
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from annotation.models import Example
from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import annotator_of
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
    user = User.objects.create_user(f"bench{number}@example.com", "x")
    annotator_of(user)
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

    def told(self) -> dict[str, float]:
        steps = statistics.quantiles(self.latencies, n=20)
        return {
            "per_second": self.cycles / self.seconds,
            "cpu_ms": 1000 * self.cpu_seconds / max(1, self.cycles),
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


def run(people: list[Person], step: str, seconds: float, pids: list[int]) -> Figures:
    """All people do the step again and again; a step that failed is counted and told."""
    latencies: list[float] = []
    failed: list[bool] = []
    began = time.perf_counter()

    def work(person: Person) -> None:
        person.reconnect()
        while (started := time.perf_counter()) < began + seconds:
            try:
                good = getattr(person, step)()
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                print(error)
                good = False
            if not good:
                failed.append(True)
                return
            latencies.append(time.perf_counter() - started)

    before = sum(map(cpu_seconds, pids))
    threads = [threading.Thread(target=work, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    used = sum(map(cpu_seconds, pids)) - before
    return Figures(len(latencies), len(failed), took, used, latencies)


def judge_cycle(kind: str, seconds: float, rounds: int, processes: int) -> dict[str, Any]:
    """Medians over the rounds, and ratios taken within a round."""
    found: dict[str, list[dict[str, float]]] = {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(database(kind, home))
        env = environment(home, url)
        manage(env, "migrate", "-v0")
        manage(env, "collectstatic", "--noinput", "-v0")
        examples = int(1000 + 2 * 150 * seconds * (rounds + 1))
        minimal, *sessions = python(env, SETUP, str(examples)).split()
        port, pid = stack.enter_context(web(env, processes))
        people = [Person(port, session, minimal) for session in sessions]
        for person in people:
            person.sit_down()
        for step in ("minimal", "judge"):  # each thread of the server opens its connection
            run(people, step, seconds, [pid])
        if not url.startswith("sqlite"):  # what autovacuum does within a minute on any site
            python(env, "from django.db import connection; connection.cursor().execute('ANALYZE')")
        for _ in range(rounds):
            for count in PEOPLE:
                for step in ("minimal", "judge"):
                    told = run(people[:count], step, seconds, [pid]).told()
                    found.setdefault(f"{step}, {count}", []).append(told)
    result: dict[str, Any] = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in found.items()
    }
    result["failed"] = sum(row["failed"] for rows in found.values() for row in rows)
    result["ratios"] = {}
    for count in PEOPLE:
        pairs = zip(found[f"judge, {count}"], found[f"minimal, {count}"], strict=True)
        ratios = [ours["cpu_ms"] / least["cpu_ms"] for ours, least in pairs]
        result["ratios"][f"judge / minimal CPU, {count}"] = statistics.median(ratios)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or an address")
    parser.add_argument("--quick", action="store_true", help="two rounds of a second")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2, help="web processes")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    seconds, rounds = (1.0, 2) if options.quick else (options.seconds, options.rounds)
    told = judge_cycle(options.database, seconds, rounds, options.processes)
    told["machine"] = machine()
    told["versions"] = versions("django", "psycopg", "gunicorn")
    if options.json:
        print(json.dumps(told, indent=1))
        return
    for name, ratio in told["ratios"].items():
        print(f"{name:32} {ratio:10.2f}   wanted at most 4")
    for people in PEOPLE:
        print(f"cycles a second, {people} people: {told[f'judge, {people}']['per_second']:.1f}")


if __name__ == "__main__":
    main()
