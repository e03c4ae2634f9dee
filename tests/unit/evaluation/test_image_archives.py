"""Archives of images: what is listed, what lies within the layers, and what engines could read."""

import gzip
import io
import json
import os
import subprocess
import tarfile

import pytest

from evaluation.isolation.uploads import image_archives
from evaluation.isolation.uploads.archives import ArchiveLimits, ArchiveRefused
from evaluation.isolation.uploads.image_archives import check_image_archive
from tests.support.archives import tar_of

CONFIG = {"architecture": "amd64", "os": "linux", "config": {"Volumes": {"/data": {}}}}
LAYER = tar_of({"etc/passwd": b"x" * 100, "./usr/systemd-\\x2d.slice": b"y" * 20})


def image(layers=None, config=CONFIG, manifest=None, links=None, **more):
    layers = {"l1/layer.tar": LAYER} if layers is None else layers
    listed = [{"Config": "c.json", "Layers": [*layers, *(links or {})], "RepoTags": ["x:1"]}]
    files = {
        "c.json": json.dumps(config).encode(),
        **layers,
        **more,
        "manifest.json": json.dumps(listed if manifest is None else manifest).encode(),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        folder = tarfile.TarInfo("l1")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return stream.getvalue()


@pytest.fixture
def scan(tmp_path):
    def run(data, **limits):
        (tmp_path / "image.tar").write_bytes(data)
        return check_image_archive(tmp_path / "image.tar", ArchiveLimits(**limits))

    return run


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("layer", [LAYER, gzip.compress(LAYER)])
def test_the_bytes_of_an_image_are_counted(packed, layer, scan):
    assert scan(packed(image({"l1/layer.tar": layer}))) == 120


def test_a_large_layer_is_read_in_pieces(scan):
    data = os.urandom(3_000_000)
    assert scan(image({"l1/layer.tar": tar_of({"a": data, "b": data})})) == 6_000_000


def test_a_layer_that_is_there_twice_is_a_link(scan):
    assert scan(image(links={"l2/layer.tar": "../l1/layer.tar"})) == 120


LISTED = {"Config": "c.json", "Layers": ["l1/layer.tar"]}
REFUSED = [
    (image(config={"os": "linux"}), "c.json: it names no architecture"),
    (image(config={"architecture": "amd64", "os": "windows"}), "for linux"),
    (image(config=[]), "c.json: it is damaged"),
    (image(manifest=[]), "contains 0 images"),
    (image(manifest=[LISTED, LISTED]), "contains 2 images"),
    (image(manifest=["x"]), "instead of one"),
    (image(manifest={}), "manifest.json: it is damaged"),
    (image(manifest=[{"Config": "c.json"}]), "lists no configuration or no layers"),
    (image(manifest=[{"Layers": ["l1/layer.tar"]}]), "lists no configuration or no layers"),
    (image(manifest=[LISTED | {"Config": "d.json"}]), "d.json: it is missing"),
    (
        image(manifest=[LISTED | {"Layers": ["l9/layer.tar"]}]),
        "l9/layer.tar: .* not in the archive",
    ),
    (image(manifest=[LISTED | {"Layers": [{}]}]), "not in the archive"),
    (image(links={"l2/layer.tar": "/etc/passwd"}), "/etc/passwd: .* not in the archive"),
    (image(links={"l2/layer.tar": "../l3/layer.tar"}), "not in the archive"),
    (tar_of({"index.json": b"{}"}), "manifest.json: it is missing.*docker save"),
    (tar_of({"manifest.json": b"[" * 100_000}), "manifest.json: it is damaged"),
    (image({"../layer.tar": LAYER}), "leads out"),
    (image({"l1/layer.tar": tar_of({"/etc/x": b""})}), "/etc/x: the name is absolute"),
    (image({"l1/layer.tar": tar_of({"a/../../x": b""})}), "leads out"),
    (image({"l1/layer.tar": b"no tar" * 500}), "No archive"),
    (image({"l1/layer.tar": LAYER[:600]}), "damaged|No archive"),
    (image({"l1/layer.tar": b"\x28\xb5\x2f\xfd" + bytes(600)}), "l1/layer.tar: zstd is not read"),
    (image({"l1/layer.tar": gzip.compress(tar_of({"zeros": bytes(30_000_000)}))}), "unfolds"),
    (image(**{"blobs/x": gzip.compress(tar_of({"zeros": bytes(30_000_000)}))}), "unfolds"),
    (image(**{"./c.json": b"{}"}), "c.json: the same name is there twice"),
    (tar_of({"c": b""}, type=tarfile.LNKTYPE, linkname="d"), "c: it isn't a plain file"),
    (b"PK\3\4" + bytes(600), "zip archives as images"),
    (b"\x28\xb5\x2f\xfd", "zstd archives as images"),
]


@pytest.mark.parametrize(("data", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_images_that_are_refused(data, words, scan):
    with pytest.raises(ArchiveRefused, match=words):
        scan(data)


def test_members_and_bytes_are_counted(scan, monkeypatch):
    scan(image(), members=4, bytes=120)
    with pytest.raises(ArchiveRefused, match="more than 3 members"):
        scan(image(), members=3)
    with pytest.raises(ArchiveRefused, match=r"l1/layer.tar: .*more than 119 bytes"):
        scan(image(), bytes=119)
    monkeypatch.setattr(image_archives, "MAX_LAYER_MEMBERS", 1)
    with pytest.raises(ArchiveRefused, match="more than 1 members"):
        scan(image())


@pytest.mark.docker
def test_what_docker_save_writes_is_read(tmp_path):
    name = "dynabench-test-image-archives"
    (tmp_path / "layer.tar").write_bytes(tar_of({"etc/x": b"x" * 120}))
    subprocess.run(["docker", "import", tmp_path / "layer.tar", name], check=True)
    try:
        subprocess.run(["docker", "save", name, "-o", tmp_path / "image.tar"], check=True)
    finally:
        subprocess.run(["docker", "rmi", name], check=True)
    assert check_image_archive(tmp_path / "image.tar") == 120


def test_what_is_kept_of_an_image_has_a_bound(scan, monkeypatch):
    """Layers are not kept, whatever their names; JSON only so far."""
    monkeypatch.setattr(image_archives, "MAX_JSON_BYTES", 2000)
    ends = "0123456789abcdef"
    layers = {f"blobs/{end}": tar_of({"x": bytes(3000)}) for end in ends}
    assert scan(image(layers)) == 3000 * len(ends)
    with pytest.raises(ArchiveRefused, match="bytes of JSON"):
        scan(image(**{f"{end}": b"{" + bytes(300) for end in ends}))
