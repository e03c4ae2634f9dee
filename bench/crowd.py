"""How many people a site carries at once, and what they cost: `python -m bench.site`.

The site is a real one on PostgreSQL: two web processes, the queue, the model server with the
sentiment starter. People are signed in; each reads a page, pauses, and sends: half of them write,
and the live model answers; the others judge. Pauses are shorter than people's, so few people make
many requests a second; `people` of the result are those who would make as many with the pauses of
`CYCLES`. They run on the same cores as the site.

    python -m bench.site --quick           # two steps of five seconds
    python -m bench.site --json > run.json # until p95 passes 300 ms, a quarter of an hour
    python -m bench.site --soak 30         # 32 clients for 30 minutes: memory, rows, connections
"""

import http.client
import json
import os
import random
import re
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.command import add_origin, build_parser
from bench.prepared import prepare_site, run_python_here, serve_web_here, set_up_site_here
from bench.site import build_command as background
from bench.site import (
    build_environment,
    find_free_port,
    open_database,
    read_cpu_seconds,
    run_python,
    serve_web,
)
from bench.verdict_page import run_process

PAUSE_SECONDS = 4.0  # of a person here, on the mean of an exponential distribution
CYCLES = {"write": 60.0, "judge": 15.0}  # seconds of a person for one example, for one vote
LIMIT_MS = 300.0
CLIENT_COUNTS = (8, 16, 32, 64, 96, 128, 192, 256, 384)
SAMPLE_SECONDS = 10
PARTS = ("web", "model server", "queue")
MAX_GROWTH = 0.05  # growth of memory from the second quarter of a soak to the last
SETUP = """
import re, sys
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.conf import settings
from annotation.models import Example
from core.accounts.models import Annotator, User, confirm_address
from core.accounts.services import get_annotator
from evaluation.training.shipped import install_starter
from tasks.models import Round, RoundTarget, Task
from tasks.rounds.loop import register_target
from tasks.services import install_official_tasks
people, examples, is_served = map(int, sys.argv[1:])
install_official_tasks()
LIMITS = ("limits: {tries_per_context: 1000000, tries_per_day: 1000000, "
          "share_of_votes: 0.99, share_of_round: 0.99}")
for task in Task.objects.filter(code__in=["sentiment", "nli"]):
    text = re.sub(r"^limits:.*?(?=^[a-z]|\\Z)", "", task.config_text, flags=re.S | re.M)
    Task.objects.filter(pk=task.pk).update(config_text=f"{text}\\n{LIMITS}\\n")
Round.objects.update(state="open")
task = Task.objects.get(code="sentiment")
if is_served:
    source = install_starter("sentiment", settings.HOME)
    register_target(task=task, name="bench", round=task.rounds.get(), source=str(source))
else:
    target = task.targets.create(name="bench", adapter="scripted", url="http://scripted.test",
                                 options={"label": "neutral"})
    RoundTarget.objects.create(round=task.rounds.get(), target=target)
round = Task.objects.get(code="nli").rounds.get()
context = round.contexts.first()
authors = Annotator.objects.bulk_create(Annotator(source="import") for _ in range(20))
Example.objects.bulk_create(
    [Example(round=round, context=context, annotator=authors[n % 20], digest=str(n),
             inputs={"hypothesis": f"Statement {n} of the bench.", "label": "neutral"},
             outcome="fooled") for n in range(examples)], batch_size=1000)
for number in range(people):
    user = User.objects.create(email=f"bench{number}@example.com", password="!")
    confirm_address(user)
    get_annotator(user)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    print(session.session_key)
from django.db import connection
connection.cursor().execute("ANALYZE")
"""
TABLES = """
import json
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute(
        "SELECT relname, pg_total_relation_size(relid), n_live_tup FROM pg_stat_user_tables")
    tables = {name: [size, rows] for name, size, rows in cursor.fetchall()}
    cursor.execute("SELECT pg_database_size(current_database())")
    (whole,) = cursor.fetchone()
    cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    (connections,) = cursor.fetchone()
from annotation.models import Example
from validation.models import Validation
print(json.dumps({"tables": tables, "bytes": whole, "connections": connections - 1,
                  "examples": Example.objects.count(), "votes": Validation.objects.count()}))
"""
POSTMASTER = """
from django.db import connection
cursor = connection.cursor()
cursor.execute("SELECT pg_backend_pid()")
print(open(f"/proc/{cursor.fetchone()[0]}/stat").read().rpartition(")")[2].split()[1])
"""
WORDS = ["mill", "river", "bread", "storm", "quiet", "bright", "music", "garden", "letter", "road"]


@dataclass
class Measurement:
    """What one step found: seconds of each kind of request, and what failed."""

    seconds: float = 0
    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """By kind: requests a second, p50 and p95 in ms."""
        found: dict[str, Any] = {"failed": len(self.failed), "said": sorted({*self.failed})[:3]}
        for kind, waits in self.waits.items():
            quantiles = statistics.quantiles(waits, n=20) if len(waits) > 1 else [waits[0]] * 19
            found[kind] = {
                "per_second": len(waits) / self.seconds,
                "p50_ms": 1000 * quantiles[9],
                "p95_ms": 1000 * quantiles[-1],
            }
        return found


class Person:
    """A browser that is signed in; half of them write, the others judge."""

    def __init__(self, port: int, session: str, number: int) -> None:
        self.kind = "judge" if number % 2 else "write"
        self._port, self._cookies = port, {"sessionid": session}
        self._drawn = random.Random(number)
        self._page = ""

    def look(self) -> tuple[str, float]:
        """Open the page where they work."""
        path = "/t/sentiment/write/" if self.kind == "write" else "/t/nli/judge/"
        self._page, seconds = self._ask("GET", path)
        return f"{self.kind} page", seconds

    def act(self) -> tuple[str, float]:
        """Send what they made of it, until it is stored: the verdict, or the next item."""
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self._page))
        if self.kind == "judge":
            found = re.search(r'name="example" value="([^"]+)"', self._page)
            form = {**form, "example": found[1] if found else "", "answer": "label:neutral"}
            self._page, seconds = self._ask("POST", "/t/nli/judge/", **form)
            if "Saved." not in self._page:
                raise RuntimeError("a vote was not saved")
            return "vote", seconds
        text = " ".join(self._drawn.choices(WORDS, k=12)) + f" {self._drawn.random()}"
        answer, seconds = self._ask("POST", "/t/sentiment/write/", **form, text=text)
        if 'id="result"' not in answer and "verdict" not in answer:
            raise RuntimeError("an example got no verdict")
        return "verdict", seconds

    def _ask(self, method: str, path: str, **form: str) -> tuple[str, float]:
        """The answer's text and the seconds it took, on a new connection, as after any pause."""
        headers = {"Cookie": "; ".join(f"{n}={value}" for n, value in self._cookies.items())}
        if form:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "HX-Request": "true"}
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(
                method, path, urllib.parse.urlencode(form) if form else None, headers
            )
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        seconds = time.perf_counter() - began
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name] = value
        if answer.status != 200:
            raise RuntimeError(f"{method} {path} answered {answer.status}")
        return text, seconds


def run_crowd(people: list[Person], seconds: float, pause: float = PAUSE_SECONDS) -> Measurement:
    """They all come within one pause, and stay so long."""
    measurement, lock = Measurement(seconds), threading.Lock()
    end = time.perf_counter() + seconds

    def work(person: Person) -> None:
        time.sleep(random.uniform(0, pause))
        step = person.look
        while time.perf_counter() < end:
            try:
                kind, took = step()
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                with lock:
                    measurement.failed.append(str(error))
                step = person.look
            else:
                with lock:
                    measurement.waits[kind].append(took)
                # The vote brings the next item; after a verdict the page is opened again.
                is_ready = step == person.look or person.kind == "judge"
                step = person.act if is_ready else person.look
            time.sleep(random.expovariate(1 / pause))

    threads = [threading.Thread(target=work, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return measurement


def read_memory(pid: int) -> list[tuple[int, int]]:
    """Of a process and all below it: bytes of its own share (PSS), and all that it maps (RSS)."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    kib = {name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) for name in ("Pss", "Rss")}  # type: ignore[index]
    own = [(1024 * kib["Pss"], 1024 * kib["Rss"])]
    return own + [one for child in children for one in read_memory(int(child))]


@dataclass
class Site:
    """A running site, its people, and the ids of its main processes."""

    env: dict[str, str]
    people: list[Person]
    pids: dict[str, int]
    pause: float = PAUSE_SECONDS

    def memory(self) -> dict[str, dict[str, float]]:
        """MB of each part: of all its processes together, and of the largest one."""
        found = {part: read_memory(pid) for part, pid in self.pids.items()}
        return {
            part: {
                "processes": len(sizes),
                "pss_mb": sum(pss for pss, _ in sizes) / 1e6,
                "largest_rss_mb": max(rss for _, rss in sizes) / 1e6,
            }
            for part, sizes in found.items()
        }

    def cpu(self) -> dict[str, float]:
        """Seconds of each part since it began."""
        return {part: read_cpu_seconds(pid) for part, pid in self.pids.items()}

    def stored(self) -> dict[str, Any]:
        """Rows, bytes of tables, and connections."""
        return dict(json.loads(run_python(self.env, TABLES)))


@contextmanager
def open_site(kind: str, most: int, examples: int, processes: int) -> Iterator[Site]:
    """A site with so many people signed in and so many examples to judge."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(open_database(kind, home))
        port = find_free_port()
        env = {**build_environment(home, url), "MODEL_SERVER_URL": f"http://127.0.0.1:{port}"}
        env |= {"PREPARE_STATEMENTS": "1", "ALLOWED_HOSTS": "127.0.0.1"}
        prepare_site(env)
        sessions = run_python(env, SETUP, str(most), str(examples), "1").split()[-most:]
        serve = background("serve_model", "--registered", "--port", str(port))
        health = f"http://127.0.0.1:{port}/models/bench/health"
        models = stack.enter_context(run_process(serve, env, health))
        web_port, web_pid = stack.enter_context(serve_web(env, processes))
        alive = f"http://127.0.0.1:{web_port}/healthz/"
        queue = stack.enter_context(run_process(background("qcluster"), env, alive))
        people = [Person(web_port, session, number) for number, session in enumerate(sessions)]
        pids = {"web": web_pid, "model server": models.pid, "queue": queue.pid}
        if kind == "postgres":  # it runs on this machine
            pids["database"] = int(run_python(env, POSTMASTER))
        run_crowd(people[:8], 3 * PAUSE_SECONDS)  # each thread opens its connection
        yield Site(env, people, pids)


@contextmanager
def open_small_site(most: int, examples: int) -> Iterator[Site]:
    """A site in this process, on SQLite, whose target is scripted; nobody pauses for long."""
    set_up_site_here()
    sessions = run_python_here(SETUP, str(most), str(examples), "0").split()[-most:]
    with serve_web_here() as (port, pid):
        people = [Person(port, session, number) for number, session in enumerate(sessions)]
        yield Site({**os.environ}, people, {"web": pid}, pause=0.1)


def compute_ratios(results: dict[str, Any]) -> dict[str, float]:
    """Return people at once, and of the first step what a request costs and how long it takes."""
    one = results["soak"] if "soak" in results else results["steps"][0]
    costs = {f"{part} CPU ms, at most": used for part, used in one["cpu_ms"].items()}
    return {
        **{f"people who {kind}": count for kind, count in results.get("people", {}).items()},
        **costs,
        "p95 ms, at most": _find_slowest_p95(one),
    }


def measure_steps(there: Site, counts: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    """Ever more people, until a p95 is above the limit or something fails."""
    found = []
    for count in counts:
        figures = measure_people(there, count, seconds)
        found.append(figures)
        if figures["failed"] or _find_slowest_p95(figures) > LIMIT_MS:
            break
    return found


def measure_people(there: Site, count: int, seconds: float) -> dict[str, Any]:
    """What so many people find, and the processor time of each part for one of their requests."""
    before = there.cpu()
    found = run_crowd(there.people[:count], seconds, there.pause)
    requests = sum(map(len, found.waits.values()))
    spent = {part: used - before[part] for part, used in there.cpu().items()}
    figures = {
        "clients": count,
        **found.figures(),
        "cpu_ms": {part: 1000 * used / max(1, requests) for part, used in spent.items()},
    }
    return figures


def _find_slowest_p95(figures: dict[str, Any]) -> float:
    return max(
        one["p95_ms"] for one in figures.values() if isinstance(one, dict) and "p95_ms" in one
    )


def estimate_people(figures: dict[str, Any]) -> dict[str, float]:
    """How many people make these examples and votes a second, at the pace of `CYCLES`."""
    rates = {"write": "verdict", "judge": "vote"}
    return {
        kind: CYCLES[kind] * figures.get(rate, {"per_second": 0})["per_second"]
        for kind, rate in rates.items()
    }


def measure_soak(there: Site, count: int, minutes: float) -> dict[str, Any]:
    """So many people for so long: memory over the time, and what the rows take."""
    before = there.stored()
    samples: list[dict[str, float]] = []
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(min(SAMPLE_SECONDS, 6 * minutes)):
            samples.append({part: one["pss_mb"] for part, one in there.memory().items()})

    watcher = threading.Thread(target=sample)
    watcher.start()
    figures = measure_people(there, count, 60 * minutes)
    is_over.set()
    watcher.join()
    after = there.stored()
    quarter = max(1, len(samples) // 4)
    memory_by_part = {}
    for part in there.pids:
        sizes = [one[part] for one in samples]
        early = statistics.mean(sizes[quarter : 2 * quarter] or sizes)
        late = statistics.mean(sizes[-quarter:])
        memory_by_part[part] = {"early_mb": early, "late_mb": late, "growth": late / early - 1}
    return {
        **figures,
        "memory": memory_by_part,
        # The database takes its cache page by page, up to what it was given.
        "is_flat": all(memory_by_part[part]["growth"] <= MAX_GROWTH for part in PARTS),
        "connections": after["connections"],
        "stored": _compute_growth(before, after),
    }


def _compute_growth(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What was stored meanwhile, in rows and bytes; the ten tables that grew most."""
    grown = {
        name: size - before["tables"].get(name, [0])[0]
        for name, (size, _rows) in after["tables"].items()
    }
    largest = sorted(grown, key=grown.__getitem__, reverse=True)[:10]
    return {
        "examples": after["examples"] - before["examples"],
        "votes": after["votes"] - before["votes"],
        "bytes": after["bytes"] - before["bytes"],
        "tables": {name: grown[name] for name in largest if grown[name]},
    }


def main() -> None:
    """Parse, measure, show."""
    parser = build_parser(__doc__, quick="two steps of five seconds")
    parser.add_argument("--database", default="postgres", help="postgres or an address")
    parser.add_argument("--seconds", type=float, default=60, help="of each step")
    parser.add_argument("--processes", type=int, default=2, help="web processes")
    parser.add_argument("--soak", type=float, metavar="MINUTES", default=0)
    parser.add_argument("--clients", type=int, default=32, help="of the soak")
    options = parser.parse_args()
    counts, seconds = (
        (CLIENT_COUNTS[:2], 5.0) if options.quick else (CLIENT_COUNTS, options.seconds)
    )
    if options.soak:
        counts, seconds = (options.clients,), 60 * options.soak
    # A vote each PAUSE_SECONDS and person at most; three decide an example.
    examples = int(500 + sum(counts) * seconds / PAUSE_SECONDS / 2)
    if options.smoke:
        counts, seconds = (2,), 2.0
        place = open_small_site(2, 60)
    else:
        place = open_site(options.database, max(counts), examples, options.processes)
    with place as there:
        results: dict[str, Any] = {"pause_seconds": PAUSE_SECONDS, "cycles": CYCLES}
        if options.soak:
            results["soak"] = measure_soak(there, options.clients, options.soak)
        else:
            results["steps"] = measure_steps(there, counts, seconds)
            good = [
                one for one in results["steps"]
                if not one["failed"] and _find_slowest_p95(one) <= LIMIT_MS
            ]  # fmt: skip
            results["people"] = estimate_people(good[-1]) if good else {"write": 0, "judge": 0}
            if not options.smoke:
                results["stored"] = there.stored()
        results["memory"] = there.memory()
    results["ratios"] = compute_ratios(results)
    lower = [name for name in results["ratios"] if name.endswith("at most")]
    results = add_origin(results, "django", "psycopg", "gunicorn", lower=lower)
    print(json.dumps(results, indent=1)) if options.json else print_results(results)


def print_results(results: dict[str, Any]) -> None:
    """A line a figure."""
    for one in [*results.get("steps", []), *([results["soak"]] if "soak" in results else [])]:
        print(f"{one['clients']:4} clients, {one['failed']} failed {one['said'] or ''}")
        for kind in ("write page", "verdict", "judge page", "vote"):
            if found := one.get(kind):
                print(
                    f"     {kind:10} {found['per_second']:6.1f} a second, "
                    f"p50 {found['p50_ms']:5.0f} ms, p95 {found['p95_ms']:5.0f} ms"
                )
        spent = ", ".join(f"{part} {used:.1f}" for part, used in one["cpu_ms"].items())
        print(f"     processor time of a request, ms: {spent}")
    if people := results.get("people"):
        print(
            f"People at once with p95 <= {LIMIT_MS:.0f} ms: {people['write']:.0f} who write and "
            f"{people['judge']:.0f} who judge, together"
        )
    for part, one in results["memory"].items():
        print(
            f"{part:13} {one['processes']} processes, {one['pss_mb']:.0f} MB in all, "
            f"the largest maps {one['largest_rss_mb']:.0f} MB"
        )
    if found := results.get("soak"):
        for part, one in found["memory"].items():
            print(f"{part:13} {one['early_mb']:.0f} MB, then {one['late_mb']:.0f} MB")
        print(f"flat: {found['is_flat']}; {found['connections']} connections; {found['stored']}")
