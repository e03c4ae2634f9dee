"""People try models that run in the sandbox: a real container answers, and is gone afterwards."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from tempfile import TemporaryFile

import pytest
from django.core.files import File
from django.db import connections
from django.test import Client

from annotation.models import Example
from evaluation.heartbeat import skip_beat
from evaluation.isolation.queue.attempt_keys import get_installation_key
from evaluation.isolation.sandbox.containers import list_own_containers
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.jobs import serve_practice
from evaluation.models import PracticeRun
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.runs.endpoints import compute_identity
from evaluation.runs.model_cache import pack_folder
from evaluation.submissions.practice import serve
from evaluation.submissions.practice.services import record_host
from tests.support.evaluations import accepted_model
from tests.support.factories import TaskFactory
from tests.support.live import wait_until
from tests.support.serving_models import says, tiny_model
from tests.support.submissions import url_of
from tests.support.writing import ok

pytestmark = pytest.mark.django_db(transaction=True)
ANSWERING = """
import json
for line in list(open("/input/examples.jsonl")):
    print(json.dumps({"id": json.loads(line)["id"], "output": {"label": "neutral"}}))
"""
SERVING = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"id": asked["uid"], "label": "neutral"}).encode())

HTTPServer(("0.0.0.0", 8080), Model).serve_forever()
"""


@pytest.fixture
def folder(tmp_path):
    def made(task):
        files = tiny_model(tmp_path / "model", "pair-classification")
        submission = accepted_model(task, digest=digest_folder(files, skip_beat), is_published=True)
        with TemporaryFile() as packed:
            pack_folder(files, packed, skip_beat)
            submission.file.save("model.tar", File(packed))
        return submission

    return made


@pytest.fixture
def image(bench):
    def made(task, program, adapter):
        command = json.dumps(["python3", "-c", program])
        id = bench.build_image("ENTRYPOINT []", f"CMD {command}")
        return accepted_model(task, kind="image", digest=id, adapter=adapter, is_published=True)

    return made


def try_it(model, texts) -> list[str]:
    """What a stranger reads who waits for the model's start and writes these; then nobody asks."""
    try:
        client, url = Client(), url_of(model, "try/")
        wait_until(PracticeRun.objects.filter(ready_at__isnull=False).exists)
        said = []
        for text in texts:
            shown = ok(client.get(url)).context["form"].initial
            sent = {name: shown[name] for name in ("assignment", "goal", "attempt_key")}
            sent["hypothesis"] = text
            said.append(ok(client.post(url, sent)).context["answers"][0].words)
        return said
    finally:
        serve.IDLE_TIMEOUT = timedelta(0)
        connections.close_all()


@pytest.fixture
def writer(tmp_path):
    """A language model that answers everything with “neutral”."""

    def made(task):
        files = says(tmp_path / "writer", "neutral")
        chat = vars(make_chat_settings(task.config))
        submission = accepted_model(task, kind="llm", chat=chat, is_published=True)
        submission.digest = compute_identity(submission, digest_folder(files, skip_beat))
        with TemporaryFile() as packed:
            pack_folder(files, packed, skip_beat)
            submission.file.save("model.tar", File(packed))
        return submission

    return made


@pytest.mark.parametrize("kind", ["folder", "writer", "image", "shim"])
def test_a_model_is_tried_in_the_sandbox(
    kind, folder, writer, image, settings, tmp_path, monkeypatch
):
    subprocess.run(["scripts/runtime_image.sh"], check=True)
    settings.MEDIA_ROOT, settings.MODEL_CACHE = tmp_path / "media", tmp_path / "cache"
    monkeypatch.setattr(serve, "IDLE_TIMEOUT", serve.IDLE_TIMEOUT)
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    record_host("here")
    task = TaskFactory(code="nli")
    made = {
        "folder": folder,
        "writer": writer,
        "image": lambda task: image(task, ANSWERING, "jsonl"),
        "shim": lambda task: image(task, SERVING, "dynalab"),
    }
    model = made[kind](task)
    assert Client().post(url_of(model, "try/start/")).status_code == 302
    run = PracticeRun.objects.get()
    with ThreadPoolExecutor(1) as pool:
        person = pool.submit(try_it, model, ["The shop was open.", "Nobody came."])
        serve_practice(run.pk)
        assert len(person.result()) == 2
    run.refresh_from_db()
    assert (run.state, run.error, run.question, run.answer) == ("done", "", "", "")
    assert not list_own_containers(get_installation_key())
    assert not Example.objects.exists()
