"""How long a person waits on top of the model: POST of the write page minus the bare model call.

Ten people in turn submit a sentence, and the same sentence goes to the model server alone, over
connections that are kept. The site is a real one: gunicorn, sessions, CSRF, SQLite on disk. Then
the task list is fetched, alone and while people wait for a target that takes eight seconds.

    python -m bench.verdict_page --quick                   # with the sentiment starter, 60 turns
    python -m bench.verdict_page --model FOLDER --json     # 200 turns; times in milliseconds
"""

import hashlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from serving.proofs import Prover  # noqa: E402

SECRET_KEY = "of-the-measured-site"
TOKEN = "b" * 32  # the CSRF cookie and its header
WAITING_PEOPLE = 24  # people; more than the server has threads
SLOW_SECONDS, WATCHED_SECONDS = 8.0, 3.0  # of the slow target, and of those in which home is asked
WARM_UP_TURNS = 10  # turns that do not count
SETUP = """
import sys, re
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.conf import settings
from core.accounts.models import User
from core.accounts.services import get_annotator
from annotation.context_picking.services import assign
from tasks.models import Round, RoundTarget, TargetModel, Task
from tasks.services import install_official_tasks
from tasks.rounds.loop import register_target
install_official_tasks()
task = Task.objects.get(code="sentiment")
print(task.pk)
text = re.sub(r"^limits:.*?(?=^[a-z]|\\Z)", "", task.config_text, flags=re.S | re.M)
task.config_text = text + "\\nlimits: {tries_per_context: 1000000, tries_per_day: 1000000}\\n"
task.save()
Round.objects.update(state="open")  # no model server runs yet that could be asked
round = task.rounds.get()
register_target(task=task, name="bench", round=round, source=sys.argv[1],
                serving={"backend": sys.argv[3]})
for number in range(10):
    user = User.objects.create_user(f"bench{number}@example.com")
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    assignment = assign(annotator=get_annotator(user), round=round)
    print(session.session_key, assignment.pk, assignment.goal)
slow = Task.objects.get(code="nli")
TargetModel.objects.create(task=slow, name="slow", adapter="scripted", url="http://slow.test",
                           options={"label": "neutral", "delay": float(sys.argv[2])})
RoundTarget.objects.create(round=slow.rounds.get(), target=slow.targets.get())
slow.config_text = re.sub(r"^limits:.*?(?=^[a-z]|\\Z)", "", slow.config_text, flags=re.S | re.M)
slow.config_text += "\\nlimits: {tries_per_context: 1000000, tries_per_day: 1000000}\\n"
slow.save()
waiting = assign(annotator=get_annotator(user), round=slow.rounds.get())
print(session.session_key, waiting.pk, waiting.goal)
"""


@contextmanager
def run_process(command: list[str], environment: dict[str, str], url: str):
    """A server, from when it answers until the end of the block."""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(url, timeout=2)
                    break
                except OSError:
                    time.sleep(0.1)
            yield server
        finally:
            server.terminate()


def time_request(connection: http.client.HTTPConnection, *request) -> tuple[float, int]:
    """Milliseconds until the whole answer is there, and its status."""
    started = time.perf_counter()
    connection.request(*request)
    answer = connection.getresponse()
    answer.read()
    return 1000 * (time.perf_counter() - started), answer.status


def measure_verdict_page(
    model: Path, count: int, find_free_port: Callable[[], int]
) -> dict[str, float]:
    """Medians over `count` turns, in ms; raises RuntimeError on a wrong status."""
    from bench.prepared import prepare_site  # which needs this module

    web_port, model_port = find_free_port(), find_free_port()
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        environment = {
            **os.environ,
            "DYNABENCH_HOME": home,
            "DATABASE_URL": f"sqlite:///{home}/db.sqlite3",
            "DJANGO_SETTINGS_MODULE": "dynabench.settings",
            "MODEL_SERVER_URL": f"http://127.0.0.1:{model_port}",
            "SECRET_KEY": SECRET_KEY,
            "LOG_LEVEL": "ERROR",
        }
        run = [sys.executable, "manage.py"]
        prepare_site(environment)
        code = "import django; django.setup()\n" + SETUP
        process = subprocess.run(
            [sys.executable, "-c", code, str(model), str(SLOW_SECONDS), "onnx"],
            cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        (task,), *people, slow = [tuple(line.split()) for line in process.stdout.splitlines()]
        serve = [*run, "serve_model", "--registered", "--port", str(model_port)]
        site = [
            sys.executable,
            "-m",
            "gunicorn",
            "dynabench.wsgi",
            "--bind",
            f"127.0.0.1:{web_port}",
        ]
        url = f"http://127.0.0.1:{model_port}/models/bench/health"
        stack.enter_context(run_process(serve, environment, url))
        stack.enter_context(run_process(site, environment, f"http://127.0.0.1:{web_port}/healthz/"))
        prover = build_prover(SECRET_KEY, int(task))
        results = _measure(web_port, model_port, people, count, prover)
        return results | _measure_while_slow(web_port, slow, count)


def measure_verdict_page_here() -> dict[str, float]:
    """Return what a few turns find where the site is in this process, and another target slow."""
    from django.conf import settings

    from bench.prepared import (
        build_tiny_model_here,
        run_manage_here,
        run_python_here,
        serve_web_here,
        set_up_site_here,
    )
    from bench.site import find_free_port

    set_up_site_here()
    model = build_tiny_model_here()
    served = find_free_port()
    settings.MODEL_SERVER_URL = f"http://127.0.0.1:{served}"
    made = run_python_here(SETUP, str(model), "1", "torch")
    (task,), *people, slow = [tuple(line.split()) for line in made.splitlines()]
    url = f"http://127.0.0.1:{served}/models/bench/health"
    prover = build_prover(settings.SECRET_KEY, int(task))
    serve = ("serve_model", "--registered", f"--port={served}")
    with run_manage_here(url, *serve), serve_web_here() as (web, _):
        results = _measure(web, served, people, 2, prover, warm=1)
        few = _measure_while_slow(
            web, slow, 2, waiting=2, watched=0.3, warm=1, expected=frozenset({200})
        )
        return results | few


def build_prover(secret_key: str, task: int) -> Prover:
    """What signs requests to the model server, as a site with this key does."""
    return Prover(hashlib.sha256(f"dynabench.model-server:{secret_key}".encode()).digest(), task)


def _build_headers(session: str) -> dict[str, str]:
    return {
        "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
        "X-CSRFToken": TOKEN,
        "HX-Request": "true",
        "Content-Type": "application/x-www-form-urlencoded",
    }


def _submit(
    site: http.client.HTTPConnection,
    session: str,
    task: str,
    field: str,
    text: str,
    assignment: str,
    goal: str,
) -> tuple[float, int]:
    form = {field: text, "attempt_key": uuid.uuid4(), "assignment": assignment, "goal": goal}
    body = urllib.parse.urlencode(form)
    return time_request(site, "POST", f"/t/{task}/write/", body, _build_headers(session))


def _measure_while_slow(
    web: int,
    slow: Sequence[str],
    count: int,
    *,
    waiting: int = WAITING_PEOPLE,
    watched: float = WATCHED_SECONDS,
    warm: int = WARM_UP_TURNS,
    expected: frozenset[int] = frozenset({202, 503}),
) -> dict[str, float]:
    """The task list's median alone, and while people wait for a target of eight seconds.

    slow: session, assignment and goal of a person whose texts that target answers.
    """
    session, assignment, goal = slow
    site = http.client.HTTPConnection("127.0.0.1", web, timeout=30)
    alone = [time_request(site, "GET", "/")[0] for _ in range(count + warm)][warm:]
    answers = []

    def wait(number: int) -> None:
        mine = http.client.HTTPConnection("127.0.0.1", web, timeout=30)
        text = f"Statement number {number} of a patient person."
        answers.append(_submit(mine, session, "nli", "hypothesis", text, assignment, goal)[1])

    people = [threading.Thread(target=wait, args=[number]) for number in range(waiting)]
    for person in people:
        person.start()
    time.sleep(watched / 3)
    during, until = [], time.monotonic() + watched
    while time.monotonic() < until:
        during.append(time_request(site, "GET", "/")[0])
    for person in people:
        person.join()
    if not set(answers) <= expected:
        raise RuntimeError(f"The slow target's pages answered {answers}.")
    home, beside = statistics.median(alone), statistics.median(during)
    return {"home_ms": home, "home_while_slow_ms": beside, "home_while_slow / home": beside / home}


def _measure(
    web: int,
    served: int,
    people: list[tuple[str, ...]],
    count: int,
    prover: Prover,
    warm: int = WARM_UP_TURNS,
) -> dict[str, float]:
    site = http.client.HTTPConnection("127.0.0.1", web, timeout=30)
    model = http.client.HTTPConnection("127.0.0.1", served, timeout=30)
    pages, bare = [], []
    lines = (ROOT / "tasks" / "official" / "sentiment" / "seed.jsonl").read_text().splitlines()
    lines = [line for line in lines if len(json.loads(line)["text"]) > 20]
    for number in range(count + warm):
        name, proof = prover.build_header()
        headers = {"Content-Type": "application/json", name.decode(): proof.decode()}
        text = json.loads(lines[7 * number % len(lines)])["text"]
        asked = json.dumps({"inputs": {"text": text}})
        seconds, status = time_request(model, "POST", "/models/bench/predict", asked, headers)
        session, assignment, goal = people[number % len(people)]
        whole, answered = _submit(site, session, "sentiment", "text", text, assignment, goal)
        if status != 200 or answered != 200:
            raise RuntimeError(f"{text}: the model answered {status}, the page {answered}.")
        if number >= warm:  # both are warm
            bare.append(seconds)
            pages.append(whole)
    apart = [page - call for page, call in zip(pages, bare, strict=True)]
    return {
        "page_ms": statistics.median(pages),
        "model_ms": statistics.median(bare),
        "page_minus_model_ms": statistics.median(apart),
        "page_minus_model_ms_p95": statistics.quantiles(apart, n=20)[-1],
    }


def main() -> None:
    """Parse, measure, show."""
    from bench.command import add_origin, build_parser
    from bench.site import find_free_port
    from evaluation.training.shipped import install_starter

    parser = build_parser(__doc__, quick="60 turns, not 200")
    parser.add_argument("--model", type=Path, help="a model's folder; default: the starter")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if args.smoke:
            results = measure_verdict_page_here()
        else:
            model = args.model or install_starter("sentiment", Path(home))
            results = measure_verdict_page(
                model.resolve(), 60 if args.quick else 200, find_free_port
            )
    ratios = {
        "page minus model ms": results["page_minus_model_ms"],
        "page minus model / home": results["page_minus_model_ms"] / results["home_ms"],
        "home while slow / home": results["home_while_slow / home"],
    }
    found = add_origin({"ratios": ratios, **results}, "django", "gunicorn", lower=ratios)
    if args.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in ratios.items():
        print(f"{name:28}{value:8.2f}")


if __name__ == "__main__":
    main()
