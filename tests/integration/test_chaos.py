"""Eight people write and judge while whatever they need is killed.

CHAOS_SECONDS says for how long (15, which kills everything once; 180 kills 40 times). The plan
follows the seed of the tests and is printed. Whatever it is: each write that was acknowledged is
there once, the numbers are those of a recount, and in the end everything works.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from pathlib import Path

import httpx
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Attempt, Example, TargetOutput
from core.accounts.models import Annotator
from evaluation.models import Dataset
from tasks.models import Round
from tests.conftest import SEED
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.live import AWAY, ROOT, Postgres, environment, family, wait_until
from tests.support.parts import free_port
from tests.support.racing_votes import LABELS, check_all, examples
from tests.support.training_data import asked_release, tiny_target
from validation.models import Consensus, Validation

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 15)
PEOPLE = 8
GIVEN_UP_SECONDS = 20  # after that a request is not sent again, and counts as not acknowledged
CSRF = "c" * 32


class Service:
    """A program with its processes, and what starts it again as systemd does."""

    def __init__(self, name: str, command: list[str], home: Path, **variables: str) -> None:
        self._command, self._environment = command, environment(home) | variables
        self._log = (home / f"{name}.log").open("wb")
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *self._command], cwd=ROOT, env=self._environment,
            stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip

    def look(self) -> None:
        """Start it again where its main process has ended, without what is left of it."""
        if self._process.poll() is not None:
            self._kill_group()
            self._start()

    def kill_main(self) -> None:
        self._process.kill()

    def kill_one(self, choose: random.Random) -> None:
        """One of the processes below the main one, if there are any just now."""
        if found := family(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(choose.choice(found), signal.SIGKILL)

    def stop(self) -> None:
        self._kill_group()
        self._process.wait()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Site:
    """Everything that operators run, and how to kill each part of it."""

    def __init__(self, home: Path) -> None:
        port, models = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        told = {"MODEL_SERVER_URL": f"http://127.0.0.1:{models}", "WEB_CONCURRENCY": "2"}
        gunicorn = ["-m", "gunicorn", "dynabench.wsgi", "--bind", f"127.0.0.1:{port}"]
        gunicorn += ["--threads", "16"]
        serve = ["manage.py", "serve_model", "--registered", "--port", str(models)]
        self.web = Service("web", gunicorn, home, **told)
        self.models = Service("models", serve, home, **told)
        self.queue = Service("queue", ["manage.py", "qcluster"], home, QUEUE_WORKERS="2", **told)
        self.kills: dict[str, Callable[[random.Random], None]] = {
            "web worker": self.web.kill_one,
            "web master": lambda _: self.web.kill_main(),
            "model server": lambda _: self.models.kill_main(),
            "process of the queue": self.queue.kill_one,
            "master of the queue": lambda _: self.queue.kill_main(),
        }
        if connection.vendor == "postgresql":
            self._postgres = Postgres()
            self.kills["database back end"] = self._kill_back_end
            self.kills["database"] = self._kill_database

    def _kill_back_end(self, choose: random.Random) -> None:
        with suppress(*AWAY), connection.cursor() as cursor:
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type='client backend'")
            os.kill(choose.choice([pid for (pid,) in cursor.fetchall()]), signal.SIGKILL)
        connection.close()

    def _kill_database(self, choose: random.Random) -> None:
        self._postgres.kill()
        time.sleep(2 * choose.random())
        self._postgres.start()

    def is_well(self, busy: list[Future[None]]) -> bool:
        """True; starts again what has ended, and raises what a person ran into."""
        for service in (self.web, self.models, self.queue):
            service.look()
        for one in busy:
            if one.done():
                one.result()
        return True

    def stop(self) -> None:
        for service in (self.web, self.models, self.queue):
            service.stop()


class Person:
    """Writes and judges, and sends again under the same key what was not acknowledged."""

    def __init__(self, number: int, url: str) -> None:
        user, browser = UserFactory(), Client()
        browser.force_login(user)
        self.pseudonym = user.annotator.pseudonym
        self._name, self._choose = f"Person {number}", random.Random(number)
        self._client = httpx.Client(
            base_url=f"{url}/api/v1", timeout=30, verify=False, headers={"X-CSRFToken": CSRF},
            cookies={"sessionid": browser.cookies["sessionid"].value, "csrftoken": CSRF},
        )  # fmt: skip
        self.sent = 0
        self.sent_again = 0
        self.wrong: list[str] = []  # answers that nobody may get
        self.written: dict[str, str] = {}  # acknowledged: the example's id by its text
        self.judged: dict[str, str] = {}  # the vote by the example's id

    def go_on(self, until: threading.Event) -> None:
        while not until.wait(0.2):  # to think
            self._write()
            self._judge()
            self._judge()

    def _ask(self, method: str, path: str, body: object = None, key: str = "") -> httpx.Response:
        """The answer, however often the connection breaks; 503: there was none in time."""
        end = time.monotonic() + GIVEN_UP_SECONDS
        while time.monotonic() < end:
            try:
                answer = self._client.request(
                    method, path, json=body, headers={"Idempotency-Key": key} if key else {}
                )
            except httpx.TransportError:
                self.sent_again += 1
                time.sleep(0.1)
                continue
            busy = answer.status_code == 409 and answer.json()["error"]["code"] == "in_progress"
            if not (busy or answer.status_code == 429 or answer.status_code >= 500):
                return answer
            time.sleep(min(float(answer.headers.get("Retry-After", 0.5)), GIVEN_UP_SECONDS / 2))
        return httpx.Response(503)

    def _expect(self, answer: httpx.Response, *codes: int) -> bool:
        """Whether it is one of the codes; 409 is a refusal for a reason, anything else wrong."""
        if answer.status_code not in (*codes, 409, 503):
            self.wrong.append(f"{answer.status_code} {answer.text[:500]}")
        return answer.status_code in codes

    def _write(self) -> None:
        assignment = self._ask("POST", "/tasks/nli/assignment/", {"want": "current"})
        if not self._expect(assignment, 200):
            return
        self.sent += 1
        text = f"{self._name} wrote sentence {self.sent}."
        path = f"/assignments/{assignment.json()['id']}/examples/"
        answer = self._ask("POST", path, {"inputs": {"hypothesis": text}}, key=f"write {text}")
        while self._expect(answer, 200, 201, 202):
            found = answer.json()
            if example := found.get("example") or (answer.status_code == 201 and found):
                self.written[text] = example["id"]
            if found.get("state") != "asking":
                return
            time.sleep(0.5)
            answer = self._ask("GET", f"/attempts/{found['id']}/")

    def _judge(self) -> None:
        item = self._ask("POST", "/tasks/nli/judging/next/")
        if not self._expect(item, 200, 204) or item.status_code == 204:
            return
        uuid, label = item.json()["example"], self._choose.choice((*LABELS, "neutral", "neutral"))
        path, vote = f"/examples/{uuid}/validations/", {"vote": f"label:{label}"}
        if self._expect(self._ask("POST", path, vote, key=f"judge {uuid}"), 200, 201):
            self.judged[uuid] = label


@pytest.fixture
def round(transactional_db, tmp_path) -> Round:
    """An open round with a model in the loop and much to judge; limits that nobody reaches."""
    task = TaskFactory(code="nli")
    limits = (
        "tries_per_context: 10000, tries_per_day: 100000, share_of_votes: 0.9, share_of_round: 0.9,"
    )
    task.config_text = task.config_text.replace("tries_per_context: 10, tries_per_day: 50,", limits)
    task.save()
    RoundFactory(task=task, number=2, state="closed")
    round = RoundFactory(task=task)
    ContextFactory(round=round)
    tiny_target(round, tmp_path)
    authors = Annotator.objects.bulk_create(
        Annotator(source=Annotator.Source.IMPORT) for _ in range(20)
    )  # of people without an account, who did not leave
    examples(round, authors, int(10 * SECONDS))
    return round


def plan(kinds: list[str], choose: random.Random) -> list[tuple[float, str]]:
    """When to kill what: everything equally often, in an order by chance."""
    count = max(len(kinds), int(SECONDS * 40 / 180))
    order: list[str] = []
    while len(order) < count:
        order += choose.sample(kinds, len(kinds))
    step = SECONDS / count
    return [((n + choose.random()) * step, kind) for n, kind in enumerate(order[:count])]


def test_what_was_acknowledged_outlives_chaos(round, tmp_path):
    closed = round.task.rounds.get(number=2)
    site, choose, stop = Site(tmp_path), random.Random(SEED), threading.Event()
    people = [Person(number, site.url) for number in range(PEOPLE)]
    pool = ThreadPoolExecutor(PEOPLE)
    try:
        busy = [pool.submit(one.go_on, stop) for one in people]
        wait_until(lambda: site.is_well(busy) and all(one.written for one in people))
        begun = time.monotonic()
        for at, kind in plan(list(site.kills), choose):
            while site.is_well(busy) and time.monotonic() < begun + at:
                time.sleep(0.05)
            print(f"{at:6.1f} s: {kind}")
            with suppress(*AWAY):
                asked_release(closed)
            site.kills[kind](choose)
        wait_until(lambda: asked_for_the_last(closed))
        wait_until(lambda: site.is_well(busy) and queue_is_done())
        before = {one: len(one.written) for one in people}
        wait_until(lambda: site.is_well(busy) and all(len(p.written) > before[p] for p in people))
    finally:
        stop.set()
        pool.shutdown()
        site.stop()
        for name in ("web", "models", "queue"):
            print(f"== {name}", (tmp_path / f"{name}.log").read_text()[-5000:], sep="\n")
        with suppress(*AWAY):
            print("== jobs that are not done", *unfinished_jobs(), sep="\n")
    check_people(people)
    check_numbers(round)


def asked_for_the_last(closed: Round) -> bool:
    """Ask for it, and let the two minutes pass in which what was killed may come back."""
    Dataset.objects.filter(state="running").update(lease_until=timezone.now())
    return asked_release(closed).pk is not None


def queue_is_done() -> bool:
    """Whether it has done every job, those of killed workers too."""
    return not unfinished_jobs()


def unfinished_jobs() -> list[dict[str, object]]:
    columns = ("version", "state", "attempts", "lease_until", "not_before", "error", "message")
    return list(Dataset.objects.exclude(state="done").values(*columns))


def check_people(people: list[Person]) -> None:
    """Everything that was acknowledged is there, and nothing is there twice."""
    print(f"{sum(len(one.written) for one in people)} examples and")
    print(f"{sum(len(one.judged) for one in people)} votes were acknowledged;")
    print(f"{sum(one.sent_again for one in people)} requests were cut off and sent again.")
    assert [wrong for one in people for wrong in one.wrong] == []
    stored = Example.objects.filter(attempt__isnull=False)
    by_text = {one.inputs["hypothesis"]: str(one.uuid) for one in stored}
    assert len(by_text) == stored.count()
    votes = Validation.objects.values_list("validator__pseudonym", "example__uuid", "label")
    by_vote = {(who, str(uuid)): label for who, uuid, label in votes}
    assert len(by_vote) == len(votes)
    for one in people:
        assert one.written.items() <= by_text.items()
        mine = {uuid: label for (who, uuid), label in by_vote.items() if who == one.pseudonym}
        assert one.judged.items() <= mine.items()


def check_numbers(round: Round) -> None:
    """What is counted, kept or shown is what a recount finds."""
    check_all()
    done = Attempt.objects.filter(state="done")
    outputs = Counter(TargetOutput.objects.values_list("example", flat=True))
    assert outputs == Counter(done.values_list("example", flat=True))
    told = StringIO()
    call_command("task_report", round.task.code, round=round.number, json=True, stdout=told)
    numbers = json.loads(told.getvalue())["all"]
    counted = Example.objects.filter(round=round)
    assert numbers["collected"] == counted.count()
    assert numbers["fooled"] == counted.filter(outcome="fooled").count()
    assert numbers["votes"] == Validation.objects.count()
    assert numbers["verified"] == Consensus.objects.filter(is_verified=True).count()
