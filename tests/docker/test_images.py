"""Images on their way in: archives that `docker save` writes, and a registry of our own."""

import gzip
import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dynabench.operations.attacks.bench import Bench
from evaluation.contract import GIB, Outcome
from evaluation.isolation.sandbox.engine import EngineError, connect_to_engine
from evaluation.isolation.sandbox.images import (
    ImageRefused,
    RegistryAway,
    has_image,
    inspect_image,
    load_image,
    pull_image,
)


def remove_image(id: str) -> None:
    with closing(connect_to_engine()) as client:
        client.images.remove(id, force=True)


@pytest.fixture(params=["plain", "gzip"])
def saved(bench: Bench, tmp_path, request) -> tuple[str, object]:
    """An image's id, and its archive; the engine has it no more. It goes by other people's name."""
    id = bench.build_image("ENV SAVED=1")
    name = f"dynabench-runtime:{bench.token}"
    with closing(connect_to_engine()) as client:
        client.images.get(id).tag(name)
        data = b"".join(client.images.get(name).save(named=True))
        client.images.remove(name)
    assert not has_image(id)
    assert name.encode() in data
    archive = tmp_path / "image.tar"
    archive.write_bytes(gzip.compress(data, 1) if request.param == "gzip" else data)
    return id, archive


def test_an_archive_is_loaded_without_its_names(bench: Bench, saved):
    id, archive = saved
    assert load_image(archive) == id
    assert not has_image(f"dynabench-runtime:{bench.token}")
    assert bench.run("answer_all()", image=id).ending.outcome == Outcome.OK


def test_what_is_no_archive_is_refused(tmp_path):
    for data in (b"", b"no archive", bytes(10240)):
        path = tmp_path / "image.tar"
        path.write_bytes(data)
        with pytest.raises(ImageRefused):
            load_image(path)


def test_facts_of_an_image(bench: Bench):
    facts = inspect_image(bench.build_image("VOLUME /data"))
    assert facts.volumes == ("/data",)
    assert facts.command[:2] == ("python3", "-c")
    assert (facts.system, facts.arch) == ("linux", facts.engine_arch)
    assert facts.size > 10**7
    with pytest.raises(ImageRefused, match="dynabench-no-such-image"):
        inspect_image("dynabench-no-such-image")


OWN = ["127.0.0.1"]  # hosts that may be private
UNKNOWN = ("application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "unknown"}]}')


class Registry:
    """A registry (API version 2) on loopback that serves one made-up image."""

    def __init__(self, declared: int | None = None) -> None:
        layer = subprocess.run(
            ["tar", "c", "--files-from", "/dev/null"], capture_output=True, check=True
        ).stdout
        packed = gzip.compress(layer)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": ["/x"]},
            "rootfs": {"type": "layers", "diff_ids": [self.digest(layer)]},
        }
        self.blobs = {}
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        manifest = {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": self.blob(json.dumps(config).encode(), "container.image.v1+json"),
            "layers": [self.blob(packed, "image.rootfs.diff.tar.gzip")],
        }
        if declared:
            manifest["layers"][0]["size"] = declared
        body = json.dumps(manifest).encode()
        self.blobs[self.digest(body)] = (kind, body)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler(packed, declared))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{self.server.server_port}"
        self.reference = f"{host}/model@{self.digest(body)}"
        self.id = manifest["config"]["digest"]

    @staticmethod
    def digest(data: bytes) -> str:
        return f"sha256:{hashlib.sha256(data).hexdigest()}"

    def blob(self, data: bytes, kind: str) -> dict:
        self.blobs[self.digest(data)] = ("application/octet-stream", data)
        media = f"application/vnd.docker.{kind}"
        return {"mediaType": media, "size": len(data), "digest": self.digest(data)}

    def handler(self, layer: bytes, declared: int | None) -> type:
        """Answers with blobs and manifests; with zeros, where the layer is declared larger."""
        blobs = self.blobs

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                found = self.path == "/v2/" or self.path.rpartition("/")[2] in blobs
                kind, data = blobs.get(self.path.rpartition("/")[2], UNKNOWN)
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                endless = declared if data == layer else None
                self.send_header("Content-Length", str(endless or len(data)))
                self.end_headers()
                with suppress(OSError):  # who had enough
                    while self.command == "GET":
                        self.wfile.write(bytes(2**20) if endless else data)
                        if not endless:
                            break

            do_GET = do_HEAD

            def log_message(self, *_) -> None:
                pass

        return Handler

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    with closing(Registry()) as registry:
        yield registry
        with suppress(EngineError):
            remove_image(registry.id)


def test_an_image_is_pulled_by_its_digest(registry: Registry):
    assert pull_image(registry.reference, OWN) == registry.id
    assert pull_image(registry.reference, OWN) == registry.id  # what is there is not fetched again


def test_a_pull_may_be_cancelled(registry: Registry):
    def beat() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pull_image(registry.reference, OWN, beat)


def test_another_digest_is_not_there(registry: Registry):
    name = registry.reference.partition("@")[0]
    with pytest.raises(ImageRefused, match="cannot be pulled"):
        pull_image(f"{name}@sha256:{'0' * 64}", OWN)


FLAKY = ["a registry that fails", "a registry where nobody listens"]


@pytest.mark.parametrize("port", [0, 9], ids=FLAKY)
def test_a_registry_that_is_away_refuses_no_image(port):
    class Failing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        do_HEAD = do_GET

        def log_message(self, *_) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reference = f"127.0.0.1:{port or server.server_port}/model@sha256:{'ab' * 32}"
        with pytest.raises(RegistryAway):
            pull_image(reference, OWN)
        server.shutdown()


@pytest.mark.parametrize("reference", ["model", "model:latest", "x@sha256:abc", "x@"])
def test_a_name_alone_is_not_pulled(reference):
    with pytest.raises(ImageRefused, match="no digest"):
        pull_image(reference)


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "localhost", "169.254.169.254", "[::1]:5000"])
def test_a_registry_in_our_network_is_not_asked(host):
    with pytest.raises(ImageRefused, match="private address"):
        pull_image(f"{host}/model@sha256:{'0' * 64}")


def test_a_large_image_is_given_up():
    with closing(Registry(declared=20 * GIB)) as registry, pytest.raises(ImageRefused):
        pull_image(registry.reference, OWN)
