"""What a person waits for beside the model: POST of the write page, minus the bare model call.

One person submits a sentence, and the same sentence goes to the model server alone, in turns, over
connections that are kept. The site is a real one: gunicorn, sessions, CSRF, SQLite on disk.
`python bench/verdict_page.py MODEL_FOLDER [COUNT]` prints one JSON object, times in milliseconds.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOKEN = "b" * 32  # the CSRF cookie and its header
SETUP = """
import sys, re
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.conf import settings
from dynabench.accounts.models import User
from dynabench.accounts.services import annotator_of
from annotation.services import assign
from tasks.models import Task
from tasks.services import install_official_tasks, register_target
install_official_tasks()
task = Task.objects.get(code="sentiment")
text = re.sub(r"^limits:.*?(?=^[a-z]|\\Z)", "", task.config_text, flags=re.S | re.M)
task.config_text = text + "\\nlimits: {tries_per_context: 1000000, tries_per_day: 1000000}\\n"
task.save()
round = task.rounds.get()
register_target(task=task, name="bench", round=round, source=sys.argv[1])
user = User.objects.create_user("bench@example.com", "x")
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.save()
assignment = assign(annotator=annotator_of(user), round=round)
print(session.session_key, assignment.pk, assignment.goal)
"""


@contextmanager
def process(command: list[str], environment: dict[str, str], url: str):
    """A server, from when it answers until the end of the block."""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(url, timeout=2)
                    break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            server.terminate()


def timed(connection: http.client.HTTPConnection, *request) -> tuple[float, int]:
    """Milliseconds until the whole answer is there, and its status."""
    started = time.perf_counter()
    connection.request(*request)
    answer = connection.getresponse()
    answer.read()
    return 1000 * (time.perf_counter() - started), answer.status


def verdict_page(model: Path, count: int, free_port) -> dict[str, float]:
    """Medians over `count` turns, in milliseconds; raises RuntimeError when an answer is not 200."""
    web, served = free_port(), free_port()
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        environment = {
            **os.environ,
            "DYNABENCH_HOME": home,
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "dynabench.settings",
            "MODEL_SERVER_URL": f"http://127.0.0.1:{served}",
            "LOG_LEVEL": "ERROR",
        }
        run = [sys.executable, "manage.py"]
        for setup in (["migrate", "-v0"], ["collectstatic", "--noinput", "-v0"]):
            subprocess.run([*run, *setup], cwd=ROOT, env=environment, check=True)
        code = "import django; django.setup()\n" + SETUP
        made = subprocess.run(
            [sys.executable, "-c", code, str(model)],
            cwd=ROOT, env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        session, assignment, goal = made.stdout.split()
        serve = [*run, "serve_model", "--registered", "--port", str(served)]
        site = [sys.executable, "-m", "gunicorn", "dynabench.wsgi", "--bind", f"127.0.0.1:{web}"]
        site += ["--worker-class", "gthread", "--threads", "16", "--no-control-socket"]
        url = f"http://127.0.0.1:{served}/models/bench/health"
        stack.enter_context(process(serve, environment, url))
        stack.enter_context(process(site, environment, f"http://127.0.0.1:{web}/healthz/"))
        return _measure(web, served, session, assignment, goal, count)


def _measure(
    web: int, served: int, session: str, assignment: str, goal: str, count: int
) -> dict[str, float]:
    site = http.client.HTTPConnection("127.0.0.1", web, timeout=30)
    model = http.client.HTTPConnection("127.0.0.1", served, timeout=30)
    headers = {
        "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
        "X-CSRFToken": TOKEN,
        "HX-Request": "true",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    pages, bare = [], []
    for number in range(count + 10):
        text = f"The {number} waiters were friendly, but nothing they brought was warm."
        asked = json.dumps({"inputs": {"text": text}})
        seconds, status = timed(
            model, "POST", "/models/bench/predict", asked, {"Content-Type": "application/json"}
        )
        form = {"text": text, "attempt_key": uuid.uuid4(), "assignment": assignment, "goal": goal}
        whole, answered = timed(
            site, "POST", "/t/sentiment/write/", urllib.parse.urlencode(form), headers
        )
        if status != 200 or answered != 200:
            raise RuntimeError(f"The model answered {status}, the page {answered}.")
        if number >= 10:  # both are warm
            bare.append(seconds)
            pages.append(whole)
    apart = [page - call for page, call in zip(pages, bare, strict=True)]
    return {
        "page_ms": statistics.median(pages),
        "model_ms": statistics.median(bare),
        "page_minus_model_ms": statistics.median(apart),
        "page_minus_model_ms_p95": statistics.quantiles(apart, n=20)[-1],
    }


if __name__ == "__main__":
    from serving import free_port

    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    print(json.dumps(verdict_page(Path(sys.argv[1]).resolve(), count, free_port)))
