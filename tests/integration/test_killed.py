"""Votes while web processes are killed: what was acknowledged is there, once.

On PostgreSQL, where votes are cast at the same moment; on SQLite they stand in line, and
test_chaos.py kills the same processes.
"""

import http.client
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from contextlib import suppress
from pathlib import Path

import pytest
from django.test import Client

from core.accounts.models import Annotator
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.live import database_url
from tests.support.parts import free_port
from tests.support.racing_votes import LABELS, check_all, examples
from validation.models import Validation

ROOT = Path(__file__).resolve().parents[2]
VOTES, KILLS = 300, 4
VALIDATORS = 8
UNHURRIED = {"DJANGO_SETTINGS_MODULE": "tests.support.unhurried_settings"}
LOST = (OSError, http.client.HTTPException)


class Site:
    """gunicorn as it is run for real, on the database of the tests."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self._log = (home / "log").open("wb")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "gunicorn", "dynabench.wsgi", "--no-control-socket"]
        command += ["--bind", f"127.0.0.1:{self.port}"]
        self._server = subprocess.Popen(
            [*command, "--workers", "2", "--threads", "16"],
            cwd=ROOT,
            env=os.environ | UNHURRIED | {"DATABASE_URL": database_url(), "DEBUG": "1"},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def workers(self) -> list[int]:
        pid = self._server.pid
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]

    def kill_worker(self, choose: random.Random) -> None:
        """kill -9 of one worker; gunicorn starts another."""
        while not (workers := self.workers()):
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.kill(choose.choice(workers), signal.SIGKILL)

    def kill_all(self) -> None:
        """kill -9 of everything."""
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


class Validator:
    """A browser that judges, and sends again what was not acknowledged."""

    def __init__(self, site: Site, session: str, pseudonym: str, seed: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
        self._cookies = {"sessionid": session}
        self._choose = random.Random(seed)
        self.pseudonym = pseudonym
        self.acknowledged: list[tuple[str, str]] = []
        self.sent_again = 0

    def _ask(self, method: str, **form: str) -> tuple[int, str]:
        """Until there is an answer, however often the connection breaks."""
        while True:
            cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
            headers = {"Cookie": cookies, "HX-Request": "true"}
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            try:
                body = urllib.parse.urlencode(form)
                self._connection.request(method, "/t/nli/judge/", body, headers)
                answer = self._connection.getresponse()
                text = answer.read().decode()
            except LOST:
                self._connection.close()
                self.sent_again += method == "POST"
                time.sleep(0.05)
                continue
            for cookie in answer.headers.get_all("Set-Cookie") or ():
                name, _, value = cookie.partition(";")[0].partition("=")
                self._cookies[name] = value
            if answer.status != 503:  # busy: come again
                return answer.status, text

    def judge(self, go_on: threading.Event) -> None:
        """Answer one example after the other."""
        page = self._ask("GET")[1]
        while go_on.is_set():
            example = re.search(r'name="example" value="([^"]+)"', page)
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
            if not example or not token:
                return  # nothing to judge now
            label = self._choose.choice((*LABELS, "neutral", "neutral"))
            form = {"example": example[1], "answer": f"label:{label}"}
            again = self.sent_again
            status, page = self._ask("POST", **form, csrfmiddlewaretoken=token[1])
            # The answer to a vote that was stored may be lost; the second try then says so.
            repeated = self.sent_again > again and "You have judged this example already" in page
            assert (status == 200 and "Saved." in page) or (status == 409 and repeated), page
            self.acknowledged.append((example[1], label))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_acknowledged_votes_outlive_killed_processes(tmp_path):
    task = TaskFactory(code="nli")
    task.config_text = task.config_text.replace("limits: {", "limits: {share_of_votes: 0.9, ")
    task.save()
    round = RoundFactory(task=task)
    ContextFactory(round=round)
    authors = Annotator.objects.bulk_create(Annotator() for _ in range(20))
    examples(round, authors, VOTES // 2)
    site = Site(tmp_path)
    people = []
    for number in range(VALIDATORS):
        user, client = UserFactory(), Client()
        client.force_login(user)
        session = client.cookies["sessionid"].value
        people.append(Validator(site, session, user.annotator.pseudonym, number))
    go_on, choose = threading.Event(), random.Random(1)
    go_on.set()
    threads = [threading.Thread(target=person.judge, args=[go_on]) for person in people]
    for thread in threads:
        thread.start()

    def count() -> int:
        return sum(len(person.acknowledged) for person in people)

    try:
        for kill in range(1, KILLS + 1):
            while count() < kill * VOTES // (KILLS + 1):
                assert any(thread.is_alive() for thread in threads)
                time.sleep(0.01)
            if kill % 4:  # else everything at once
                site.kill_worker(choose)
            else:
                site.kill_all()
                site.start()
        while count() < VOTES:
            assert any(thread.is_alive() for thread in threads)
            time.sleep(0.01)
        go_on.clear()
        for thread in threads:
            thread.join()
    finally:
        go_on.clear()
        site.kill_all()
    acknowledged = {(person.pseudonym, *vote) for person in people for vote in person.acknowledged}
    stored = Validation.objects.values_list("validator__pseudonym", "example__uuid", "label")
    assert sorted((who, str(uuid), label) for who, uuid, label in stored) == sorted(acknowledged)
    assert count() == len(acknowledged) >= VOTES
    assert sum(person.sent_again for person in people) > 0
    check_all()
