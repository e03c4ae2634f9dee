"""Load or pull submitted images onto the engine, and check them."""

import json
import re
import shutil
import socket
import tarfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image

from core.files.damage import describe_damage
from evaluation.contract import GIB, MIB, BeatCallback, ServerAway
from evaluation.isolation.sandbox.engine import connect_to_engine
from evaluation.isolation.sandbox.limits import MAX_IMAGE_BYTES, SPARE_BYTES
from tasks.targets.endpoints.addresses import is_permitted

NAME_KEY_PATTERN = re.compile(
    r"^(io\.containerd\.image\.name|org\.opencontainers\.image\.ref\.name)$"
)
PINNED_PATTERN = re.compile(r"(?P<name>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})")


class ImageRefused(Exception):
    """Raised when an image cannot be loaded, pulled or run as submitted. The message says why."""


class RegistryAway(ServerAway):
    """Raised when a registry does not answer, fails or asks us to retry later.

    The message names the registry.
    """


REGISTRY_FAILURE_PATTERN = re.compile(
    r"no such host|time.?out|timed out|connection (refused|reset)|\bEOF\b|misbehaving|unreachable"
    r"|toomanyrequests|too many requests|rate limit|deadline exceeded|temporary|\b50\d\b",
    re.IGNORECASE,
)
"""Matches an engine's message about a registry that fails. Takes precedence over a refusal."""
REGISTRY_REFUSAL_PATTERN = re.compile(
    r"not found|unknown|denied|unauthorized|authorization failed|forbidden|no basic auth"
    r"|no matching manifest|not supported|unsupported|invalid reference|does not match",
    re.IGNORECASE,
)
"""Matches an engine's message about a registry's definite refusal."""
UNKNOWN_HOST_PATTERN = re.compile(r"no such host", re.IGNORECASE)


def build_pull_error(name: str, message: str) -> Exception:
    """Return ImageRefused for a registry's definite refusal, RegistryAway for its failure.

    message: the engine's error message, which is all that it reports of the registry's answer.
    """
    engine_message = " ".join(message.split())[:300]
    nameless_message = message.replace(name, "")  # an image may be called "denied"
    if REGISTRY_REFUSAL_PATTERN.search(nameless_message) and not REGISTRY_FAILURE_PATTERN.search(
        nameless_message
    ):
        return ImageRefused(
            f"The image cannot be pulled: {engine_message}. Check its name and digest. The image "
            "must be public, because the site sends no password to a registry."
        )
    hint = ""
    if UNKNOWN_HOST_PATTERN.search(message):
        hint = " Check the name of the registry."
    return RegistryAway(
        f"The registry of {name} does not give the image now: {engine_message}.{hint}"
    )


class ImageFacts(NamedTuple):
    """What an image declares, and the architecture of the engine that will run it."""

    id: str
    size: int  # size in bytes when unpacked
    system: str  # linux, windows
    arch: str  # amd64, arm64
    engine_arch: str
    command: tuple[str, ...]  # entrypoint and arguments
    volumes: tuple[str, ...]


def inspect_image(reference: str) -> ImageFacts:
    """Return the facts of an image on this engine. Raises ImageRefused and EngineError."""
    with closing(connect_to_engine()) as client:
        image = _find_image(client, reference)
        arch = client.version()["Arch"]
    attrs = image.attrs
    config = attrs.get("Config") or {}
    entrypoint, arguments = config.get("Entrypoint") or (), config.get("Cmd") or ()
    return ImageFacts(
        id=image.id,
        size=attrs["Size"],
        system=attrs["Os"],
        arch=attrs["Architecture"],
        engine_arch=arch,
        command=tuple(entrypoint) + tuple(arguments),
        volumes=tuple(config.get("Volumes") or ()),
    )


def find_image_problems(facts: ImageFacts) -> list[str]:
    """Return the reasons why an image may not be run, with corrections; empty if it may be run."""
    problems = []
    if (facts.system, facts.arch) != ("linux", facts.engine_arch):
        problems.append(
            f"The image is made for {facts.system}/{facts.arch}, but models run on "
            f"linux/{facts.engine_arch} here. Build it with --platform linux/{facts.engine_arch}."
        )
    if not facts.command:
        problems.append("The image has neither ENTRYPOINT nor CMD, so nothing would run. Set one.")
    if facts.volumes:
        problems.append(
            f"The image declares volumes ({', '.join(sorted(facts.volumes))}). Take the VOLUME "
            "lines out: nothing but /tmp can be written to."
        )
    if facts.size > MAX_IMAGE_BYTES:
        problems.append(
            f"The image takes {facts.size / GIB:.1f} GiB unpacked; at most "
            f"{MAX_IMAGE_BYTES / GIB:g} GiB are allowed. Leave out what the model does not need."
        )
    return problems


def has_image(image_id: str) -> bool:
    """Return whether the engine has an image with this id. Raises EngineError."""
    with closing(connect_to_engine()) as client:
        try:
            client.images.get(image_id)
        except ImageNotFound:
            return False
    return True


def remove_unnamed_images(image_ids: Collection[str]) -> list[str]:
    """Remove the images from this engine unless they have a name; return the removed ids.

    A named image belongs to the operator, even if somebody submitted the same one. Raises
    EngineError.
    """
    removed_ids = []
    with closing(connect_to_engine()) as client:
        for image in client.images.list():
            if image.id in image_ids and not image.tags:
                with suppress(APIError):  # a container uses it
                    client.images.remove(image.id)
                    removed_ids.append(str(image.id))
    return removed_ids


def load_image(archive: Path) -> str:
    """Load a scanned `docker save` archive and return the image's id.

    The image's names are removed, because one could replace the runtime image, in which others'
    models run. Raises ImageRefused and EngineError.
    """
    with closing(connect_to_engine()) as client:
        try:
            images = client.images.load(_strip_names(archive))
        except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
            raise ImageRefused(
                f"The file isn't an archive of `docker save`: {describe_damage(error)}."
            ) from None
        except docker.errors.ImageLoadError as error:
            raise ImageRefused(f"The engine cannot load the image: {error}") from None
    if len(images) != 1:
        raise ImageRefused(f"The archive contains {len(images)} images. Save only one.")
    return str(images[0].id)


def stream_image(image_id: str) -> Iterator[bytes]:
    """Yield the bytes of an image of this engine, as `docker save` writes it.

    Raises EngineError.
    """
    with closing(connect_to_engine()) as client:
        yield from client.api.get_image(image_id)


def _strip_names(archive: Path) -> Iterator[bytes]:
    """Yield the bytes of an archive of images, with the images' names removed."""
    with tarfile.open(archive, "r|*") as members:
        for member in members:
            if member.name == "repositories":
                continue
            content: Any = None
            if member.isreg():
                content = members.extractfile(member)
            if content and member.name in ("manifest.json", "index.json"):
                data = json.dumps(_strip_manifest_names(json.loads(content.read(MIB)))).encode()
                member.size = len(data)
                content = None
            else:
                data = b""
            # Rewritten piece by piece, so that an image of gigabytes is streamed to the engine.
            yield member.tobuf()
            yield data
            while content and (block := content.read(MIB)):
                yield block
            if member.isreg():  # tar fills the last block of a file with zeros
                yield bytes(-member.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)  # the end of a tar archive


def _strip_manifest_names(value: Any) -> Any:
    """Return a manifest without the names that loading the image would assign."""
    if isinstance(value, list):
        return list(map(_strip_manifest_names, value))
    if not isinstance(value, dict):
        return value
    nameless_entries: dict[str, Any] = {}
    for key, entry in value.items():
        if key == "RepoTags":  # Docker needs the key
            nameless_entries[key] = []
        elif not NAME_KEY_PATTERN.match(key):
            nameless_entries[key] = _strip_manifest_names(entry)
    return nameless_entries


def pull_image(
    reference: str, private_hosts: Iterable[str] = (), beat: BeatCallback = lambda: None
) -> str:
    """Pull an image by its digest (`name@sha256:…`) and return its id.

    private_hosts: registries that may be at private addresses. Stops if the layers are too large,
    if the disk fills up, or if `beat` raises. Raises ImageRefused, RegistryAway and EngineError.
    """
    reference_match = PINNED_PATTERN.fullmatch(reference)
    if not reference_match:
        raise ImageRefused(
            f"{reference} has no digest. Write NAME@sha256:…, as `docker images --digests` shows "
            "it, because a tag can point to another image later."
        )
    _check_registry(reference_match["name"], tuple(private_hosts))
    with closing(connect_to_engine()) as client:
        root = client.info()["DockerRootDir"]
        sizes: dict[str, int] = {}
        try:
            messages = client.api.pull(
                reference_match["name"], tag=reference_match["digest"], stream=True, decode=True
            )
            with closing(messages):
                for message in messages:  # one per piece, so `beat` can stop the pull soon
                    beat()
                    if "error" in message:
                        raise build_pull_error(reference_match["name"], str(message["error"]))
                    detail = message.get("progressDetail") or {}
                    sizes[message.get("id", "")] = detail.get("total", 0)
                    _check_disk_space(sum(sizes.values()), root)
        except APIError as error:
            raise build_pull_error(reference_match["name"], str(error.explanation)) from None
        return str(_find_image(client, reference).id)


def _check_registry(name: str, allowed_hosts: tuple[str, ...]) -> None:
    """Raise ImageRefused if an image's registry is at a private address that is not allowed."""
    registry, slash, _ = name.partition("/")
    host = urlsplit(f"//{registry}").hostname or ""
    if not slash or not (host == "localhost" or "." in registry or ":" in registry):
        return  # the engine's own default
    with suppress(socket.gaierror):  # perhaps the engine reaches the host through a proxy
        for address_info in socket.getaddrinfo(host, None):
            address = address_info[4][0]
            if not is_permitted(host, ip_address(address), allowed_hosts):
                raise ImageRefused(f"The registry {host} is at a private address.")


def _check_disk_space(size: int, root: str) -> None:
    """Raise ImageRefused if an image is too large, DockerException if the disk is nearly full."""
    if size > MAX_IMAGE_BYTES:
        raise ImageRefused(f"The image is larger than {MAX_IMAGE_BYTES / GIB:g} GiB.")
    if Path(root).exists() and shutil.disk_usage(root).free < SPARE_BYTES:
        raise DockerException(f"{root} is nearly full")


def _find_image(client: docker.DockerClient, reference: str) -> Image:
    try:
        return client.images.get(reference)
    except ImageNotFound:
        raise ImageRefused(f"The engine has no image {reference}.") from None
