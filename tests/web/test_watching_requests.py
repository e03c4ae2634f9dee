"""One request in logs and traces: lines of JSON, and spans that reach a collector."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from django.core.mail import send_mail
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from core.env import LOGGED_MAIL_BACKEND, is_real_mail_backend
from core.telemetry import tracing
from core.telemetry.logs import JsonLines, build_pseudonym
from serving.registry import ModelRegistry
from tasks.models import TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import scripted_target
from tests.support.live import ROOT
from tests.support.model_server import serving
from tests.support.parts import free_port
from tests.support.writing import URL, open_form, stored
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the log of the site holds with LOG_FORMAT=json."""
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def test_a_line_names_the_request_the_task_and_a_pseudonym(as_alice, alice, nli, lines):
    scripted_target(nli, label="no label of the task")
    response = as_alice.post(URL, open_form(as_alice, text="Zorro was here."), **HTMX)
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    (line,) = [one for one in found if one["logger"] == "annotation.attempts.services"]
    assert line["request"] == response["X-Request-Id"]
    assert line["task"] == "nli"
    assert line["user"] == build_pseudonym(alice.pk)
    assert line["level"] == "WARNING"
    assert "Zorro" not in lines.getvalue()
    logging.getLogger("clock").warning("%s", "outside\nof requests")
    assert json.loads(lines.getvalue().splitlines()[-1]).keys() == {
        "time", "level", "logger", "message",
    }  # fmt: skip


def test_an_error_keeps_its_traceback_in_one_line(lines):
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("clock").exception("Failed")
    assert "ValueError: broken" in json.loads(lines.getvalue())["exception"]


def test_a_mail_that_goes_to_the_log_is_one_line(lines, settings, caplog):
    caplog.set_level("INFO")
    settings.EMAIL_BACKEND = LOGGED_MAIL_BACKEND
    assert not is_real_mail_backend(LOGGED_MAIL_BACKEND)
    send_mail("A link", "https://bench.example.org/key\n\nBye.", None, ["alice@example.com"])
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert line["logger"] == "dynabench.mails"
    assert "https://bench.example.org/key" in line["message"]


@pytest.mark.django_db(databases=[])
def test_all_lines_of_the_web_server_are_json(tmp_path):
    environment = os.environ | {"DYNABENCH_HOME": str(tmp_path), "LOG_FORMAT": "json"}
    command = [sys.executable, "-m", "gunicorn", "dynabench.wsgi", "--no-control-socket"]
    command += ["--bind", f"127.0.0.1:{free_port()}"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as web:
        messages = []
        for line in web.stderr:
            messages.append(json.loads(line)["message"])
            if "Booting worker" in messages[-1]:
                web.terminate()
    assert any("Starting gunicorn" in message for message in messages)
    assert len(messages) > 3


@pytest.fixture
def collector(monkeypatch) -> Iterator[list]:
    """The spans that a collector of OpenTelemetry received."""
    spans = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "dynabench-test")
        monkeypatch.setattr(tracing, "_provider", None)
        tracing.start_tracing()
        yield spans
        server.shutdown()


def test_a_trace_goes_from_the_page_over_the_model_to_the_store(
    as_alice, nli, collector, settings, tmp_path
):
    place = settings.MIDDLEWARE.index("dynabench.middleware.assign_request_id") + 1
    settings.MIDDLEWARE.insert(place, "dynabench.middleware.trace_requests")
    as_alice.handler.load_middleware()
    scripted_target(nli, "starter", label="neutral")
    stored(as_alice)
    registry = ModelRegistry({}.get, {}.keys, tmp_path)
    with serving(registry) as port:
        settings.MODEL_SERVER_URL = f"http://127.0.0.1:{port}"
        unknown = TargetModel(task=nli.task, name="unknown", source="org/name")
        with tracing.open_span("ask ours"), pytest.raises(EndpointError):
            get_endpoint(unknown).predict([{"premise": "a", "hypothesis": "b"}], deadline_seconds=9)
    tracing._provider.shutdown()  # which sends what waits
    by_name = {one.name: one for one in collector}
    page = by_name["POST /t/<slug:code>/write/"]
    for name in ("ask target", "store example"):
        assert by_name[name].parent_span_id == page.span_id
        assert by_name[name].trace_id == page.trace_id
    ours, served = by_name["ask ours"], by_name["POST /models/unknown/predict"]
    assert (served.parent_span_id, served.trace_id) == (ours.span_id, ours.trace_id)
    (attribute,) = by_name["ask target"].attributes
    assert (attribute.key, attribute.value.string_value) == ("target", "starter")
