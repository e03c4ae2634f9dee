"""Pictures and recordings: what is taken, who gets them, and when they go."""

import base64
import json
import struct
import zipfile
import zlib
from datetime import timedelta
from io import BytesIO, StringIO

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.utils import timezone
from PIL import Image

from annotation.models import Assignment, Example
from dynabench.accounts.services import annotator_of
from dynabench.lib.errors import Invalid
from dynabench.me.services import delete_person
from evaluation.jobs import build_dataset
from evaluation.releases.build import Options
from evaluation.releases.services import request_release
from evaluation.sets.parsing import read_set
from tasks.config.loading import check_config
from tasks.contexts.services import undo_import
from tasks.line_files import FileError
from tasks.media.selectors import for_models
from tasks.media.services import store_media, tidy_media
from tasks.models import Context, ContextBatch, Media, Round, Task
from tests.support import media
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import derive_all
from validation.models import Validation

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
def _own_storage(settings, tmp_path):
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


def upload(data, name="it.png"):
    return SimpleUploadedFile(name, data, content_type="text/html")


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


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image", huge()),
        ("image", animated("GIF")),
        ("image", animated("WEBP")),
        ("image", animated("PNG")),
        ("image", SVG),
        ("image", media.png(size=(200, 200), kind="JPEG")[:300]),
        ("image", media.wav()),
        ("image", b""),
        ("audio", media.wav(61)),
        ("audio", media.png()),
        ("audio", b"RIFF\xff\xff\xff\xffWAVE"),
        ("audio", b"#EXTM3U\nfile:///etc/passwd\n"),
        ("audio", b""),
    ],
)
def test_what_is_no_picture_or_recording_is_refused_and_nothing_is_stored(task, kind, data):
    with pytest.raises(Invalid):
        store_media(task=task, kind=kind, data=data)
    assert not Media.objects.exists()
    assert not default_storage.exists("tasks")


def test_a_recording_is_as_long_as_what_is_heard(task):
    found = store_media(task=task, kind="audio", data=lying(61))
    assert found["seconds"] < 1
    longer = bytearray(media.wav(1))
    longer[40:44] = struct.pack("<I", 2**31 - 1)
    assert store_media(task=task, kind="audio", data=bytes(longer))["seconds"] == 1


def test_only_what_is_seen_is_stored(task):
    """Neither where and when it was taken, nor a second file behind the first."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "at home"  # turned by 90°
    exif.get_ifd(0x8825)[1] = "N"
    secret = b"<script>alert(1)</script>PK\x03\x04"
    data = media.png(size=(8, 6), kind="JPEG", exif=exif, comment=secret) + secret
    found = store_media(task=task, kind="image", data=data)
    assert (found["width"], found["height"], found["mime"]) == (6, 8, "image/jpeg")
    stored = Media.objects.get().file.read()
    assert b"home" not in stored
    assert b"script" not in stored
    assert not Image.open(BytesIO(stored)).getexif()


def test_what_shines_through_is_white_for_everybody(task):
    file = BytesIO()
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(file, "PNG")
    store_media(task=task, kind="image", data=file.getvalue())
    assert Image.open(Media.objects.get().file).getpixel((0, 0)) == (255, 255, 255)


def test_equal_files_are_stored_once(task, alice):
    ways = [store_media(task=task, kind="image", data=media.FILES["image"]) for _ in range(2)]
    assert ways[0] == ways[1]
    assert Media.objects.count() == 1


def test_a_picture_of_50_megabytes_is_refused_in_the_form(round, alice):
    client = signed_in(alice)
    reply = sent(client, photo_file=upload(bytes(50 * 10**6)), photo_alt="A zero")
    assert reply.status_code == 422
    assert 'id="id_photo_error"' in reply.text
    assert "Which colour is it?" in reply.text
    assert "A zero" in reply.text
    assert (Media.objects.count(), Example.objects.count()) == (1, 0)


def test_strangers_send_no_large_body(round, client):
    data = {"photo_file": upload(bytes(5 * 10**6))}
    assert client.post("/t/pictures/try/", data).status_code == 413


def test_a_file_outlives_a_refused_form(round, alice):
    client = signed_in(alice)
    Media.objects.all().delete()
    files = media.sent("photo", "image") | media.sent("noise", "audio")
    refused = sent(
        client, answer="", photo_alt="", **{k: v for k, v in files.items() if "file" in k}
    )
    assert refused.status_code == 422
    kept = {
        name: media.value(kind)["digest"] for name, kind in (("photo", "image"), ("noise", "audio"))
    }
    for name, digest in kept.items():
        assert f'<input type="hidden" name="{name}" value="{digest}">' in refused.text
        assert f'src="/media/{digest}/"' in refused.text
    assert 'id="id_photo_error"' in refused.text  # its words are missing
    assert 'id="id_noise_error"' not in refused.text
    words = {"photo_alt": "Red", "noise_alt": ""}
    ok(sent(client, **kept, **words))
    inputs = Example.objects.get().inputs
    assert inputs["photo"] == media.value("image") | {"alt": "Red"}
    assert inputs["noise"] == media.value("audio") | {"alt": ""}
    assert all(Media.objects.values_list("is_used", flat=True))


def test_a_draft_keeps_a_file_for_another_day(round, alice):
    client, digest = signed_in(alice), media.value("image")["digest"]
    Media.objects.update(is_used=False, kept_from=timezone.now() - timedelta(hours=30))
    form = form_for(client, photo=digest, photo_alt="Red")
    ok(client.post(f"/draft/{form['assignment']}/", form))
    assert tidy_media(10) == 0
    page = ok(client.get("/t/pictures/write/")).text
    assert f'value="{digest}"' in page
    assert 'value="Red"' in page


def test_a_file_that_nobody_used_goes_after_a_day(task, alice, django_capture_on_commit_callbacks):
    store_media(task=task, kind="image", data=media.FILES["image"])
    name = Media.objects.get().file.name
    with django_capture_on_commit_callbacks(execute=True):
        assert tidy_media(10) == 0
        Media.objects.update(kept_from=timezone.now() - timedelta(hours=25))
        assert tidy_media(10) == 1
    assert not default_storage.exists(name)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"scene": media.stored(task, "audio")})
    scripted_target(round, output={"answer": "blue"})
    gone = sent(signed_in(alice), photo=media.value("image")["digest"], photo_alt="Red")
    assert gone.status_code == 422
    assert 'id="id_photo_error"' in gone.text


@pytest.mark.parametrize("field", ["photo", "noise"])
def test_a_file_of_the_other_kind_is_refused(round, alice, field):
    other = "audio" if field == "photo" else "image"
    digest = media.stored(round.task, other)["digest"]
    reply = sent(signed_in(alice), **{field: digest, f"{field}_alt": "It"})
    assert f'id="id_{field}_error"' in reply.text
    assert not Example.objects.exists()


def test_what_the_form_sends_is_no_address(round, alice):
    reply = sent(signed_in(alice), photo="../../etc/passwd", photo_alt="It")
    assert reply.status_code == 200  # as if nothing had been sent
    assert "photo" not in Example.objects.get().inputs


def test_a_picture_is_served_as_what_it_is(round, client):
    found = client.get(f"/media/{media.value('image')['digest']}/")
    assert found["Content-Type"] == "image/png"
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Cache-Control"].startswith("private")
    assert "sandbox" in found["Content-Security-Policy"]
    assert Image.open(BytesIO(found.content)).size == (8, 6)
    again = client.get(found.wsgi_request.path, headers={"If-None-Match": found["ETag"]})
    assert again.status_code == 304
    assert client.get(f"/media/{'0' * 64}/").status_code == 404


def test_a_part_of_a_recording_can_be_asked_for(task, client):
    """Some browsers play nothing otherwise."""
    url = f"/media/{media.stored(task, 'audio')['digest']}/"
    whole = client.get(url).content
    part = client.get(url, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole[10:20])
    assert part["Content-Range"] == f"bytes 10-19/{len(whole)}"
    assert client.get(url, headers={"Range": f"bytes={len(whole)}-"}).status_code == 416


def test_the_picture_of_a_hidden_task_is_its_members_alone(round, client, alice):
    Task.objects.update(is_visible=False)
    url = f"/media/{media.value('image')['digest']}/"
    for one in (client, signed_in(alice)):
        assert one.get(url).status_code == 404
    round.task.members.create(user=alice, role="annotator")
    assert signed_in(alice).get(url).status_code == 200


def test_a_sensitive_picture_is_shielded(round, alice):
    Task.objects.update(config_text=VQA + "content_warning: {text: Take care}\n")
    client = signed_in(alice)
    client.post("/t/pictures/gate/")
    page = ok(client.get("/t/pictures/write/")).text
    assert '<details class="shield">' in page.partition("<img")[0]


def test_models_read_bytes_and_no_words(round):
    value = round.contexts.get().fields["scene"]
    read = for_models(round.task.config, round.task, {"scene": value, "question": "Why?"})
    assert read["scene"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert read["question"] == "Why?"
    Media.objects.all().delete()
    assert for_models(round.task.config, round.task, {"scene": value})["scene"] == ""


def test_who_leaves_takes_their_files_along(round, alice, django_capture_on_commit_callbacks):
    client = signed_in(alice)
    ok(sent(client, **media.sent("noise", "audio"), photo=media.value("image")["digest"],
            photo_alt="Red"))  # fmt: skip
    store_media(task=round.task, kind="image", data=media.png("blue"), sent_by=annotator_of(alice))
    with django_capture_on_commit_callbacks(execute=True):
        delete_person(user=alice)
    (left,) = Media.objects.all()
    assert left.digest == media.value("image")["digest"]  # the context shows it
    assert "photo" not in Example.objects.get().inputs


# Archives


def archive(tmp_path, table, files, name="scenes.csv", folder=""):
    path = tmp_path / "scenes.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{folder}{name}", table)
        for file, data in files.items():
            made.writestr(f"{folder}{file}", data)
    return path


def run(path):
    out, err = StringIO(), StringIO()
    call_command("import_contexts", "pictures", str(path), stdout=out, stderr=err)
    return out.getvalue()


@pytest.mark.parametrize("folder", ["", "my scenes/"])
def test_an_archive_brings_pictures_and_undoing_takes_them(
    task, tmp_path, folder, alice, django_capture_on_commit_callbacks
):
    round = Round.objects.create(task=task, number=1)
    rows = ("scene,scene_alt,tag", "a/1.png,A red stripe,easy", "./a/2.jpg,Blue,hard")
    table = "\n".join([*rows, "a/1.png,A red stripe,"])
    files = {
        "a/1.png": media.png(),
        "a/2.jpg": media.png("blue", kind="JPEG"),
        "a/3.png": b"unused",
    }
    path = archive(tmp_path, table, files, folder=folder)
    assert "2 new, 1 duplicates" in run(path)
    fields = [one.fields["scene"] for one in round.contexts.order_by("pk")]
    assert fields[0] == media.value("image")
    assert (fields[1]["mime"], fields[1]["alt"]) == ("image/jpeg", "Blue")
    assert Media.objects.filter(is_used=True).count() == 2
    assert "0 new" in run(path)
    with django_capture_on_commit_callbacks(execute=True):
        undo_import(batch=ContextBatch.objects.get(), actor=alice)
    assert not Media.objects.exists()


def test_a_table_of_json_lines_names_files_or_stored_ones(task, tmp_path):
    round = Round.objects.create(task=task, number=1)
    digest = store_media(task=task, kind="image", data=media.png("blue"))["digest"]
    rows = [{"scene": "1.png", "scene_alt": "Red"}, {"scene": {"digest": digest, "alt": "Blue"}}]
    table = "\n".join(map(json.dumps, rows))
    run(archive(tmp_path, table, {"1.png": media.png()}, name="scenes.jsonl"))
    assert [one.fields["scene"]["alt"] for one in round.contexts.order_by("pk")] == ["Red", "Blue"]


@pytest.mark.parametrize(
    ("table", "files", "said"),
    [
        ("scene,scene_alt\nhttps://example.com/1.png,It\n", {}, "holds no file"),
        ("scene,scene_alt\n../1.png,It\n", {}, "holds no file ../1.png"),
        ("scene,scene_alt\n1.png,\n", {"1.png": media.png()}, "say in words"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": SVG}, "no picture"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": animated("GIF")}, "moves"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": huge()}, "40 megapixels"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": bytes(11 * 10**6)}, "10 MB"),
    ],
)
def test_a_bad_row_of_an_archive_says_what_to_mend(task, tmp_path, table, files, said):
    Round.objects.create(task=task, number=1)
    path, err = archive(tmp_path, table, files), StringIO()
    with pytest.raises(CommandError):
        call_command("import_contexts", "pictures", str(path), stderr=err)
    assert ":2: " in err.getvalue()
    assert said in err.getvalue()
    assert not Context.objects.exists()
    assert not Media.objects.exists()


@pytest.mark.parametrize("data", [b"no archive", b"PK\x03\x04" + bytes(50)])
def test_what_is_no_archive_is_refused(task, tmp_path, data):
    Round.objects.create(task=task, number=1)
    path = tmp_path / "scenes.zip"
    path.write_bytes(data)
    with pytest.raises(CommandError):
        run(path)


def test_an_archive_holds_one_table(task, tmp_path):
    Round.objects.create(task=task, number=1)
    with pytest.raises(CommandError, match="one"):
        run(archive(tmp_path, "scene\n", {"more.csv": b"scene\n"}))


def test_a_link_is_refused_with_the_way_to_do_it(task, tmp_path):
    Round.objects.create(task=task, number=1)
    path, err = tmp_path / "links.jsonl", StringIO()
    path.write_text('{"scene": "https://example.com/1.png"}\n')
    with pytest.raises(CommandError):
        call_command("import_contexts", "pictures", str(path), stderr=err)
    assert "archive" in err.getvalue()


# Releases


@pytest.fixture
def closed(round, alice):
    """A closed round with an example that has a picture of its own, a noise, and was judged."""
    digest = store_media(task=round.task, kind="image", data=media.png("blue"))["digest"]
    noise = media.sent("noise", "audio")
    ok(sent(signed_in(alice), photo=digest, photo_alt="Blue", **noise))
    derive_all(Example.objects.all())
    judge = UserFactory()
    Validation.objects.create(
        example=Example.objects.get(), validator=annotator_of(judge), verdict="correct"
    )
    derive_all(Example.objects.all())
    Round.objects.update(state="closed")
    round.refresh_from_db()
    return round


def released(round, **options):
    dataset = request_release(round=round, options=Options(dev=0, test=0, **options), actor=None)
    build_dataset(dataset.pk)
    dataset.refresh_from_db()
    assert dataset.state == "done", dataset.error
    return dataset


def test_a_release_brings_its_pictures(closed, settings):
    import datasets
    import mlcroissant

    made = released(closed)
    folder = settings.MEDIA_ROOT / "releases" / str(made)
    with zipfile.ZipFile(folder / "media.zip") as packed:
        assert packed.testzip() is None
        names = packed.namelist()
    inputs = Example.objects.get().inputs
    digests = [media.value("image")["digest"], inputs["photo"]["digest"], inputs["noise"]["digest"]]
    assert sorted(names) == sorted([f"{digests[0]}.png", f"{digests[1]}.png", f"{digests[2]}.wav"])
    cache = str(settings.SPOOL / "cache")
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=cache)
    assert loaded.features["media_noise"] == datasets.Audio()
    row = loaded.remove_columns("media_noise")[0]
    assert row["media_scene"].size == (8, 6)
    assert row["media_photo"].getpixel((0, 0)) == (0, 0, 255)
    read = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not read.metadata.ctx.issues.errors


def test_what_was_erased_is_in_no_later_version(closed, alice, settings):
    first = released(closed)
    delete_person(user=alice)
    second = released(closed)
    sizes = []
    for made in (first, second):
        with zipfile.ZipFile(settings.MEDIA_ROOT / "releases" / str(made) / "media.zip") as packed:
            sizes.append(len(packed.namelist()))
    assert sizes == [3, 0]


# Programs


def as_program(user, method, url, **body):
    call = getattr(signed_in(user), method)
    return call(f"/api/v1/tasks/pictures/{url}", body, content_type="application/json")


def coded(data):
    return base64.b64encode(data).decode()


def test_a_program_uploads_and_names_it(round, alice):
    made = as_program(alice, "post", "media/", kind="image", content=coded(media.png("blue")))
    assert made.status_code == 201, made.text
    value = made.json()
    got = signed_in(alice).get(f"/api/v1/tasks/pictures/media/{value['digest']}/")
    assert Image.open(BytesIO(got.content)).getpixel((0, 0)) == (0, 0, 255)
    assignment = as_program(alice, "post", "assignment/").json()
    url = f"/api/v1/assignments/{assignment['id']}/examples/"
    inputs = {"question": "Which colour?", "answer": "red"}
    for photo in (
        {"digest": value["digest"]},  # no words
        {"digest": "0" * 64, "alt": "It"},
        {"digest": value["digest"], "alt": "It", "mime": "text/html", "more": 1},
        "https://example.com/1.png",
    ):
        body = {"inputs": inputs | {"photo": photo}}
        reply = signed_in(alice).post(url, body, content_type="application/json")
        is_whole = isinstance(photo, dict) and "more" in photo
        assert reply.status_code == (201 if is_whole else 422), reply.text
        if not is_whole:
            assert "inputs.photo" in reply.json()["error"]["fields"]
    assert Example.objects.get().inputs["photo"] == value | {"alt": "It"}  # nothing of its own


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "image", "content": "§"}, "content"),
        ({"kind": "video", "content": ""}, "kind"),
        ({"kind": "image", "content": coded(SVG)}, None),
    ],
)
def test_a_program_reads_why_a_file_is_not_taken(round, alice, body, field):
    reply = as_program(alice, "post", "media/", **body)
    assert reply.status_code == 422
    assert field is None or field in reply.json()["error"]["fields"]
    assert Media.objects.count() == 1


def test_programs_import_archives(task, tmp_path, alice):
    round = Round.objects.create(task=task, number=1)
    task.members.create(user=alice, role="editor")
    path = archive(tmp_path, "scene,scene_alt\n1.png,Red\n", {"1.png": media.png()})
    body = {"format": "zip", "text": coded(path.read_bytes())}
    tried = as_program(alice, "post", "rounds/1/contexts/", dry_run=True, **body)
    assert (tried.status_code, tried.json()["new"]) == (200, 1)
    assert not Media.objects.exists()
    made = as_program(alice, "post", "rounds/1/contexts/", **body)
    assert (made.status_code, made.json()["stored"]) == (201, 1)
    assert round.contexts.get().fields["scene"]["alt"] == "Red"


def test_history_names_only_stored_files(round, tmp_path):
    row = {
        "task": "pictures", "round": 7, "uid": "u1", "author": "w1", "metadata": {},
        "model_wrong": None, "context": {"scene": media.value("image")}, "author_label": None,
        "input": {"question": "Why?", "photo": {"digest": "0" * 64, "alt": "It"}},
        "model_prediction": None, "validations": [],
    }  # fmt: skip
    file = tmp_path / "history.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(CommandError, match="not stored"):
        call_command("import_examples", str(file), stdout=StringIO(), stderr=StringIO())
    assert not Example.objects.exists()


def test_a_file_of_examples_makes_no_set_of_such_a_task(task, tmp_path):
    file = tmp_path / "set.jsonl"
    file.write_text(json.dumps({"scene": "1.png", "answer": "red"}))
    with pytest.raises(FileError, match="scene"):
        list(read_set(file, file.name, task.config))


# Configurations


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("validation:", "slices: [scene]\nvalidation:", "slices[0]"),
        ("name: question", "name: photo_alt", "input[0].name"),
        ("name: question", "name: scene_file", "input[0].name"),
        ("output: [answer]", "output: [answer, {name: p, type: image}]", "output[1].type"),
        ("output: [answer]", "metadata: {create: [{name: x, type: image}]}\noutput: [answer]",
         "metadata.create[0].type"),
        ("type: image, label: Scene", "type: image, max_length: 3", "context[0].max_length"),
        ("metrics:", "support: {prompt_field: scene}\nmetrics:", "support.prompt_field"),
        ("{type: string_f1, field: answer}", "{type: contains, field: photo}", "verdict.field"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_do_is_refused_where_it_stands(old, new, path):
    assert old in VQA
    config, problems = check_config(VQA.replace(old, new, 1))
    assert config is None
    assert path in [one.path for one in problems if one.severity == "error"]
    assert all(one.fix for one in problems)


def test_the_pictures_of_examples_are_stored_and_stay(round, alice):
    round.task.members.create(user=alice, role="owner")
    value = store_media(task=round.task, kind="image", data=media.png("blue")) | {"alt": "Blue"}
    for shown, status in ((value | {"digest": "0" * 64}, 422), (value, 200)):
        good = {"context": {"scene": shown}, "input": {"question": "Which?", "answer": "red"}}
        text = f"{VQA}examples: {json.dumps({'good': [good | {'reason': 'It is.'}]})}\n"
        told = as_program(alice, "get", "config/").json()
        saved = as_program(alice, "put", "config/", config_text=text, version=told["version"])
        assert saved.status_code == status, saved.text
    assert Media.objects.get(digest=value["digest"]).is_used
    page = ok(signed_in(alice).get("/t/pictures/try/")).text
    assert f'src="/media/{value["digest"]}/"' in page
