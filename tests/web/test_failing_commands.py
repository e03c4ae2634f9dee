"""Commands in surroundings that are not well: one line says what to do, and no traceback."""

import runpy
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError

from dynabench.operations.management import sentences
from dynabench.operations.management.commands import doctor
from dynabench.operations.management.sentences import explain_error
from dynabench.operations.soundness.health import Finding
from serving.errors import LoadingError, ModelListUnavailableError
from serving.server import load_new_models
from tasks.targets.connect import list_registered_names
from tests.support.live import ROOT


def test_the_command_line_ends_with_the_sentence(monkeypatch):
    for error, code in ((OperationalError("disk is full"), SystemExit), (KeyError("x"), KeyError)):
        fail = Mock(side_effect=error)
        monkeypatch.setattr("django.core.management.execute_from_command_line", fail)
        with pytest.raises(code) as caught:
            runpy.run_path(str(ROOT / "manage.py"), run_name="__main__")
        assert code is KeyError or "full" in str(caught.value.code)


def test_the_doctor_reads_no_files_of_a_database_that_is_not_ready(monkeypatch, capsys):
    lacks = Finding("database", "bad", "Run manage.py migrate: tasks 0001.")
    monkeypatch.setattr(doctor, "run_checks", lambda: iter([lacks]))
    monkeypatch.setattr(doctor, "check_media", Mock(side_effect=OperationalError("no such table")))
    with pytest.raises(CommandError):
        call_command("doctor", quick=True, media=True)
    assert lacks.message in capsys.readouterr().out


def test_what_is_a_sentence_and_what_a_fault_of_ours(monkeypatch, db):
    refused = OperationalError("connection refused\nIs the server running?")
    assert explain_error(refused) == explain_error(ValueError("x")) == ""  # the database is well
    assert "full" in explain_error(OperationalError("database or disk is full"))
    lacks = Finding("schema", "bad", "Run manage.py migrate: tasks 0001.")
    with monkeypatch.context() as patch:
        patch.setattr(sentences, "check_schema", lambda: lacks)
        assert lacks.message in explain_error(ProgrammingError("relation does not exist"))

    def away():
        raise refused

    monkeypatch.setattr(sentences, "check_schema", away)
    assert "refused" in explain_error(refused)
    assert "\n" not in explain_error(refused)


class Registry:
    """Of a model server whose database comes and goes, as `steps` say."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def load_new_models(self):
        if error := self.steps.pop(0):
            raise error


def test_a_model_server_tells_an_outage_once(caplog, db, monkeypatch):
    """And answers that it has to wait: nothing else can be done there."""
    away = ModelListUnavailableError("The models cannot be read.")
    registry = Registry(away, away, None, None, away, ValueError("ours"))
    is_away, lines = False, []
    caplog.set_level("INFO")
    for _ in range(6):
        caplog.clear()
        is_away = load_new_models(registry, is_away)
        lines.append([(one.levelname, one.exc_info is not None) for one in caplog.records])
    told, ours = [("WARNING", False)], [("ERROR", True)]
    assert lines == [told, [], [("INFO", False)], [], told, ours]
    monkeypatch.setattr("django.db.models.query.QuerySet._fetch_all", fails)
    with pytest.raises(LoadingError):
        list_registered_names()


def fails(*args):
    raise OperationalError("connection refused")
