"""Bad files at every door: the page, the API, an archive of contexts."""

# ruff: noqa: F811  (fixtures are named where they are used)

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from tasks.models import Context, Media, Task
from tests.support import media
from tests.support.picture_tasks import (
    SVG,
    VQA,
    archive,
    as_program,
    coded,
    huge,
    lying,
    own_storage,  # noqa: F401
    round,  # noqa: F401
    sent,
    task,  # noqa: F401
    upload,
)
from tests.support.writing import signed_in


def by_page(user, tmp_path, kind, data):
    """Why it was refused; empty: it was taken."""
    name = {"image": "photo", "audio": "noise"}[kind]
    files = {f"{name}_file": upload(data), f"{name}_alt": "It"}
    reply = sent(signed_in(user), **files)
    return reply.text if reply.status_code == 422 else ""


def by_api(user, tmp_path, kind, data):
    """As `by_page`."""
    reply = as_program(user, "post", "media/", kind=kind, content=coded(data))
    return reply.text if reply.status_code in (413, 422) else ""


def by_archive(user, tmp_path, kind, data):
    """As `by_page`."""
    Task.objects.update(config_text=VQA.replace("scene, type: image", f"scene, type: {kind}"))
    path, err = archive(tmp_path, "scene,scene_alt\nit,It\n", {"it": data}), StringIO()
    try:
        call_command("import_contexts", "pictures", str(path), stderr=err, stdout=StringIO())
    except CommandError:
        assert ":2: " in err.getvalue()
        return err.getvalue()
    return ""


DOORS = pytest.mark.parametrize("door", [by_page, by_api, by_archive])


@DOORS
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image", bytes(50 * 10**6)),
        ("image", huge()),
        ("image", SVG),
        ("audio", media.wav(61)),
        ("audio", b"RIFF\xff\xff\xff\xffWAVE"),
    ],
    ids=["50 MB", "60,000 x 60,000", "svg", "61 s", "no sound"],
)
def test_at_no_door_a_bad_file_is_taken_by_half(round, alice, tmp_path, door, kind, data):
    assert door(alice, tmp_path, kind, data)
    assert (Media.objects.count(), Context.objects.count(), Example.objects.count()) == (1, 1, 0)


@DOORS
@pytest.mark.parametrize(
    ("kind", "data"),
    [("image", media.png("blue", kind="JPEG") + SVG + b"PK\x03\x04"), ("audio", lying(61) + SVG)],
    ids=["polyglot", "audio that lies"],
)
def test_at_every_door_only_what_is_seen_or_heard_is_kept(round, alice, tmp_path, door, kind, data):
    assert not door(alice, tmp_path, kind, data)
    kept = Media.objects.latest("pk")
    assert b"script" not in kept.file.read()
    assert kept.about.get("seconds", 0) < 1
