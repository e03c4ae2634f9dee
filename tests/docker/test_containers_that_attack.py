"""Programs in real containers: the documented one, and those that mean harm."""

import json
import re
from base64 import b64encode
from pathlib import Path

import pytest
from django.core.cache import cache

from annotation.models import Example
from dynabench.adversaries import container_worker
from dynabench.adversaries.image_services import bring_image
from dynabench.adversaries.jobs import check_image
from dynabench.adversaries.models import AdversaryImage, AdversaryRun, AdversaryTry
from dynabench.adversaries.services import start_run
from evaluation.isolation.queue.attempt_keys import get_installation_key
from evaluation.isolation.sandbox.containers import list_own_containers
from evaluation.isolation.sandbox.images import stream_image
from evaluation.isolation.uploads.chunked import add_file
from tests.support.adversaries import make_adversary, sentiment_round, work_on
from tests.support.containers import SOURCE

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[2] / "docs" / "adversaries.md"
START = """
import json, os, sys, time
run = json.loads(input())["run"]
print("started", file=sys.stderr, flush=True)

def write(name, **question):
    print(json.dumps({name: question}), flush=True)

def send(name, **question):
    write(name, **question)
    return json.loads(input())
"""
FOOLING = "text='We adored the small blue boat.', label='positive'"
PROGRAMS = {
    "good": f"send('propose', {FOOLING})",
    "long": "for n in 'ABCD': send('ask', text=f'We adored boat {n}.', label='positive')",
    "loops": "while True: pass",
    "floods": "while True: write('ask')",
    "copies": f"for _ in range(10_000): send('propose', {FOOLING})",
    "no JSON": "print('hello', flush=True); time.sleep(60)",
    "no line": "while True: sys.stdout.write('x' * 65536)",
    "empty lines": "while True: print(flush=True)",
    "dies mid-try": f"write('propose', {FOOLING}); os._exit(3)",
    "leaves early": f"write('propose', {FOOLING})",
    "network": "import urllib.request as r; r.urlopen('http://1.1.1.1', timeout=5)",
    "sleeps": "time.sleep(60)",
    "kills itself": "os.kill(os.getpid(), 9)",
}


def read_documented_program() -> str:
    section = DOCS.read_text().partition("### Container")[2]
    return re.search("```python\n(.*?)```", section, re.DOTALL)[1]


def build_image(bench, program: str) -> str:
    """Build an image with a program, and return its id."""
    code = b64encode(program.encode()).decode()
    start = f"import base64; exec(base64.b64decode('{code}').decode())"
    return bench.build_image("ENTRYPOINT []", f"CMD {json.dumps(['python3', '-c', start])}")


@pytest.fixture(scope="module")
def image(bench) -> str:
    """An image with all programs, of which the run's seed chooses one: building takes seconds."""
    return build_image(bench, f"{START}exec({list(PROGRAMS.values())!r}[run['seed']])")


@pytest.fixture(autouse=True)
def _own_cache():
    cache.clear()  # of the ids of another test's models


def play(image: str, seed: int = 0) -> AdversaryRun:
    """Run an image in a container until its run is over, and return the run."""
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, "container", seed=seed)
    AdversaryImage.objects.create(
        adversary=adversary, number=1, source=SOURCE, digest=image, state="done",
        allowed_at=adversary.created_at,
    )  # fmt: skip
    run = work_on(start_run(adversary=adversary, actor=owner))
    assert not list_own_containers(get_installation_key())
    return run


def play_program(image: str, name: str) -> AdversaryRun:
    """Run one of PROGRAMS."""
    return play(image, seed=list(PROGRAMS).index(name))


def test_the_documented_program_finds_a_catch(bench):
    run = play(build_image(bench, read_documented_program()))
    assert (run.state, run.ended_by, run.error) == ("done", "finished", "")
    assert run.examples == Example.objects.count() >= 1
    assert run.calls == AdversaryTry.objects.count() + run.examples


@pytest.mark.parametrize(
    ("name", "state", "ended_by"),
    [
        ("loops", "done", "gone"),
        ("floods", "done", "repeats"),
        ("copies", "done", "repeats"),
        ("no JSON", "failed", ""),
        ("no line", "failed", ""),
        ("empty lines", "done", "repeats"),
        ("dies mid-try", "failed", ""),
        ("leaves early", "done", "finished"),
        ("network", "failed", ""),
        ("sleeps", "done", "minutes"),
        ("kills itself", "failed", ""),
    ],
)
def test_a_bad_container_ends_clearly(image, name, state, ended_by, monkeypatch):
    if ended_by == "gone":
        monkeypatch.setattr(container_worker, "MAX_SILENT_SECONDS", 1.0)
    if ended_by == "minutes":
        limits = container_worker.get_machine_limits()
        short_limits = container_worker.replace(limits, seconds=2.0)
        monkeypatch.setattr(
            container_worker.ContainerSlice, "_build_limits", lambda _: short_limits
        )
    run = play_program(image, name)
    assert (run.state, run.ended_by) == (state, ended_by)
    assert bool(run.error) == (state == "failed")
    # Of one that is stopped in the middle of its first words, nothing may have arrived.
    if name in ("loops", "network", "sleeps", "kills itself"):
        assert "started" in run.log
    # What it had asked is logged and counted once, with its example.
    tries = AdversaryTry.objects.count()
    assert (run.calls, run.examples) == (2 * tries, tries)
    assert tries == ("propose" in PROGRAMS[name])


def test_an_archive_is_checked_and_runs(image, settings, tmp_path):
    """As docker save writes it: uploaded, checked, loaded, and run."""
    settings.MEDIA_ROOT = tmp_path / "media"
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, "container")
    archive = tmp_path / "image.tar"
    with archive.open("wb") as file:
        for block in stream_image(image):
            file.write(block)
    with archive.open("rb") as file:
        upload = add_file(owner, "image.tar", archive.stat().st_size, file)
    brought = bring_image(adversary=adversary, actor=owner, upload=upload)
    check_image(brought.pk)
    brought.refresh_from_db()
    assert (brought.state, brought.error) == ("done", "")
    assert brought.size
    run = work_on(start_run(adversary=adversary, actor=owner))
    assert (run.ended_by, run.examples) == ("finished", 1)


def test_a_file_that_is_no_image_is_refused(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, "container")
    file = tmp_path / "notes.txt"
    file.write_text("no image")
    with file.open("rb") as stream:
        upload = add_file(owner, "notes.txt", 8, stream)
    brought = bring_image(adversary=adversary, actor=owner, upload=upload)
    check_image(brought.pk)
    brought.refresh_from_db()
    assert brought.state == "failed"
    assert brought.error


def test_a_killed_worker_leaves_a_run_that_continues(image, monkeypatch):
    """It loses its lease after the second answer. The next container asks nothing twice."""
    count = 0
    describe = container_worker.describe_answer

    def lose_the_second(logged_try, run):
        nonlocal count
        count += 1
        if count == 2:
            AdversaryRun.objects.update(state="queued", lease_token=None)  # as the sweep does
        return describe(logged_try, run)

    monkeypatch.setattr(container_worker, "describe_answer", lose_the_second)
    run = play_program(image, "long")
    assert (run.ended_by, run.calls, AdversaryTry.objects.count()) == ("finished", 4, 4)
    assert count > 4
