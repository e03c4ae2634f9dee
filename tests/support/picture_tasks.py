"""A task with pictures and recordings, what its form and its API are sent, and files that lie."""

import base64
import struct
import zipfile
import zlib
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from annotation.models import Assignment
from tasks.models import Round, Task
from tests.support import media
from tests.support.factories import ContextFactory, scripted_target
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX

VQA = """
version: 1
name: Pictures
instructions: Ask.
goal: {text: Ask what the model answers wrongly}
context:
  - {name: scene, type: image, label: Scene}
input:
  - {name: question, type: text, label: Question, max_length: 200}
  - {name: photo, type: image, label: Your photo, required: false}
  - {name: noise, type: audio, label: A noise, required: false}
  - {name: answer, type: text, label: Right answer}
output: [answer]
verdict: {type: string_f1, field: answer}
metrics: {main: squad_f1}
validation: {votes: {needed: 1}}
"""


@pytest.fixture(autouse=True)
def own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.SPOOL = tmp_path


@pytest.fixture
def task(db):
    return Task.objects.create(code="pictures", name="Pictures", config_text=VQA)


@pytest.fixture
def round(task):
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"scene": media.stored(task, "image")})
    scripted_target(round, output={"answer": "blue"})
    return round


def form_for(client, **more):
    ok(client.get("/t/pictures/write/"))
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "goal": ""}
    form |= {"assignment": Assignment.objects.get(left_at=None).pk}
    return form | {"question": "Which colour is it?", "answer": "red"} | more


def sent(client, **more):
    return client.post("/t/pictures/write/", form_for(client, **more), **HTMX)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def huge():
    """A small file that says that it is a picture of 60,000 × 60,000, and begins as one."""
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(7501 * 100)))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def animated(kind):
    file = BytesIO()
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()


def lying(seconds):
    """A recording whose header says that it is a thousand bytes long, and a stretch after that."""
    data = bytearray(media.wav(seconds))
    data[4:8], data[40:44] = struct.pack("<I", 1036), struct.pack("<I", 1000)
    return bytes(data)


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def as_program(user, method, url, **body):
    call = getattr(signed_in(user), method)
    return call(f"/api/v1/tasks/pictures/{url}", body, content_type="application/json")


def coded(data):
    return base64.b64encode(data).decode()


def upload(data, name="it.png"):
    return SimpleUploadedFile(name, data, content_type="text/html")


def archive(tmp_path, table, files, name="scenes.csv", folder=""):
    path = tmp_path / "scenes.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{folder}{name}", table)
        for file, data in files.items():
            made.writestr(f"{folder}{file}", data)
    return path
