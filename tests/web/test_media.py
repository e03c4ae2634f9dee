"""Pictures and recordings: what is taken, who gets them, and when they go."""

# ruff: noqa: F811  (fixtures are named where they are used)

import struct
import zipfile
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone
from PIL import Image

from annotation.models import Example
from core.accounts.services import get_annotator
from core.errors import Invalid
from dynabench.people.deletion.services import delete_person
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.jobs import build_dataset
from tasks.contexts.media.selectors import prepare_for_models
from tasks.contexts.media.services import store_media, tidy_media
from tasks.models import Media, Round, Task
from tests.support import media
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.picture_tasks import (
    SVG,
    VQA,
    animated,
    form_for,
    huge,
    lying,
    own_storage,  # noqa: F401
    round,  # noqa: F401
    sent,
    task,  # noqa: F401
    upload,
)
from tests.support.writing import ok, signed_in
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.models import Validation


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
    read = prepare_for_models(round.task.config, round.task, {"scene": value, "question": "Why?"})
    assert read["scene"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert read["question"] == "Why?"
    Media.objects.all().delete()
    assert prepare_for_models(round.task.config, round.task, {"scene": value})["scene"] == ""


def test_who_leaves_takes_their_files_along(round, alice, django_capture_on_commit_callbacks):
    client = signed_in(alice)
    ok(sent(client, **media.sent("noise", "audio"), photo=media.value("image")["digest"],
            photo_alt="Red"))  # fmt: skip
    store_media(task=round.task, kind="image", data=media.png("blue"), sent_by=get_annotator(alice))
    with django_capture_on_commit_callbacks(execute=True):
        delete_person(user=alice)
    (left,) = Media.objects.all()
    assert left.digest == media.value("image")["digest"]  # the context shows it
    assert "photo" not in Example.objects.get().inputs


@pytest.fixture
def closed(round, alice):
    """A closed round with an example that has a picture of its own, a noise, and was judged."""
    digest = store_media(task=round.task, kind="image", data=media.png("blue"))["digest"]
    noise = media.sent("noise", "audio")
    ok(sent(signed_in(alice), photo=digest, photo_alt="Blue", **noise))
    derive_consensus_of_all(Example.objects.all())
    judge = UserFactory()
    Validation.objects.create(
        example=Example.objects.get(), validator=get_annotator(judge), verdict="correct"
    )
    derive_consensus_of_all(Example.objects.all())
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
