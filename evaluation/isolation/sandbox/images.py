"""Submitted images: loading or pulling them onto the engine, and checking them."""

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

from core.files.damage import damage_of
from evaluation.contract import GIB, MIB, Beat, ServerAway
from evaluation.isolation.sandbox.engine import connect
from evaluation.isolation.sandbox.limits import IMAGE_BYTES, SPARE_BYTES
from tasks.targets.endpoints.addresses import is_permitted

NAME_KEYS = re.compile(r"^(io\.containerd\.image\.name|org\.opencontainers\.image\.ref\.name)$")
PINNED = re.compile(r"(?P<name>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})")


class ImageRefused(Exception):
    """Raised when an image cannot be loaded, pulled or run as submitted. The message says why."""


class RegistryAway(ServerAway):
    """Raised when a registry does not answer, fails or asks us to retry later.

    The message names it.
    """


REGISTRY_FAILURE = re.compile(
    r"no such host|time.?out|timed out|connection (refused|reset)|\bEOF\b|misbehaving|unreachable"
    r"|toomanyrequests|too many requests|rate limit|deadline exceeded|temporary|\b50\d\b",
    re.IGNORECASE,
)
"""Words of an engine about a registry that fails; they come before a no."""
REGISTRY_REFUSAL = re.compile(
    r"not found|unknown|denied|unauthorized|authorization failed|forbidden|no basic auth"
    r"|no matching manifest|not supported|unsupported|invalid reference|does not match",
    re.IGNORECASE,
)
"""Words of an engine about a registry's definite no."""
UNKNOWN_HOST = re.compile(r"no such host", re.IGNORECASE)


def pull_failure(name: str, message: str) -> Exception:
    """Return ImageRefused for a registry's definite refusal, RegistryAway for its failure.

    message: the engine's error message, which is all that it reports of the registry's answer.
    """
    words = " ".join(message.split())[:300]
    about = message.replace(name, "")  # an image may be called "denied"
    if REGISTRY_REFUSAL.search(about) and not REGISTRY_FAILURE.search(about):
        return ImageRefused(
            f"The image cannot be pulled: {words}. Check its name and digest. Everybody must be "
            "able to read it: the site sends no password to a registry."
        )
    hint = ""
    if UNKNOWN_HOST.search(message):
        hint = " Check the name of the registry."
    return RegistryAway(f"The registry of {name} does not give the image now: {words}.{hint}")


class ImageFacts(NamedTuple):
    """What an image declares, and the architecture of the engine that will run it."""

    id: str
    size: int  # bytes, unpacked
    system: str  # linux, windows
    arch: str  # amd64, arm64
    engine_arch: str
    command: tuple[str, ...]  # entrypoint and arguments
    volumes: tuple[str, ...]


def inspect_image(reference: str) -> ImageFacts:
    """Return the facts of an image on this engine. Raises ImageRefused and EngineError."""
    with closing(connect()) as client:
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


def check_image(facts: ImageFacts) -> list[str]:
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
    if facts.size > IMAGE_BYTES:
        problems.append(
            f"The image takes {facts.size / GIB:.1f} GiB unpacked; at most "
            f"{IMAGE_BYTES / GIB:g} GiB are allowed. Leave out what the model does not need."
        )
    return problems


def has_image(id: str) -> bool:
    """Return whether the engine has an image with this id. Raises EngineError."""
    with closing(connect()) as client:
        try:
            client.images.get(id)
        except ImageNotFound:
            return False
    return True


def remove_nameless(ids: Collection[str]) -> list[str]:
    """Remove those of the images that have no name from this engine; return their ids.

    A named image belongs to the operator, even if somebody submitted the same one. Raises
    EngineError.
    """
    removed_ids = []
    with closing(connect()) as client:
        for image in client.images.list():
            if image.id in ids and not image.tags:
                with suppress(APIError):  # a container has it
                    client.images.remove(image.id)
                    removed_ids.append(str(image.id))
    return removed_ids


def load_image(archive: Path) -> str:
    """Load a scanned `docker save` archive and return the image's id.

    The image's names are removed, because one could replace the runtime image, in which others'
    models run. Raises ImageRefused and EngineError.
    """
    with closing(connect()) as client:
        try:
            images = client.images.load(_strip_names(archive))
        except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
            raise ImageRefused(
                f"The file is no archive of `docker save`: {damage_of(error)}."
            ) from None
        except docker.errors.ImageLoadError as error:
            raise ImageRefused(f"The engine cannot load the image: {error}") from None
    if len(images) != 1:
        raise ImageRefused(f"The archive holds {len(images)} images. Save one alone.")
    return str(images[0].id)


def save_image(id: str) -> Iterator[bytes]:
    """Yield the bytes of an image of this engine, as `docker save` writes it.

    Raises EngineError.
    """
    with closing(connect()) as client:
        yield from client.api.get_image(id)


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
            # Rewritten by hand, in pieces: an image of gigabytes goes to the engine as it is read.
            yield member.tobuf()
            yield data
            while content and (part := content.read(MIB)):
                yield part
            if member.isreg():  # tar fills the last block of a file with zeros
                yield bytes(-member.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)  # the end of a tar archive


def _strip_manifest_names(value: Any) -> Any:
    """Return a manifest without the names that loading the image would assign."""
    if isinstance(value, list):
        return list(map(_strip_manifest_names, value))
    if not isinstance(value, dict):
        return value
    nameless: dict[str, Any] = {}
    for key, inner in value.items():
        if key == "RepoTags":  # docker needs the key
            nameless[key] = []
        elif not NAME_KEYS.match(key):
            nameless[key] = _strip_manifest_names(inner)
    return nameless


def pull_image(reference: str, private_hosts: Iterable[str] = (), beat: Beat = lambda: None) -> str:
    """Pull an image by its digest (`name@sha256:…`) and return its id.

    private_hosts: registries that may be at private addresses. Stops if the layers are too large,
    if the disk fills up, or if `beat` raises. Raises ImageRefused, RegistryAway and EngineError.
    """
    reference_match = PINNED.fullmatch(reference)
    if not reference_match:
        raise ImageRefused(
            f"{reference} names no digest. Write NAME@sha256:…, as `docker images --digests` "
            "shows it: a tag may stand for something else tomorrow."
        )
    _check_registry(reference_match["name"], tuple(private_hosts))
    with closing(connect()) as client:
        root = client.info()["DockerRootDir"]
        sizes: dict[str, int] = {}
        try:
            messages = client.api.pull(
                reference_match["name"], tag=reference_match["digest"], stream=True, decode=True
            )
            with closing(messages):
                for message in messages:  # one for each piece, so the pull ends soon after `beat`
                    beat()
                    if "error" in message:
                        raise pull_failure(reference_match["name"], str(message["error"]))
                    detail = message.get("progressDetail") or {}
                    sizes[message.get("id", "")] = detail.get("total", 0)
                    _check_room(sum(sizes.values()), root)
        except APIError as error:
            raise pull_failure(reference_match["name"], str(error.explanation)) from None
        return str(_find_image(client, reference).id)


def _check_registry(name: str, allowed_hosts: tuple[str, ...]) -> None:
    """Raise ImageRefused if an image's registry is at a private address that is not allowed."""
    first, slash, _ = name.partition("/")
    host = urlsplit(f"//{first}").hostname or ""
    if not slash or not (host == "localhost" or "." in first or ":" in first):
        return  # the engine's own default
    with suppress(socket.gaierror):  # perhaps the engine knows the host, by a proxy
        for found_address in socket.getaddrinfo(host, None):
            address = found_address[4][0]
            if not is_permitted(host, ip_address(address), allowed_hosts):
                raise ImageRefused(f"The registry {host} is at a private address.")


def _check_room(size: int, root: str) -> None:
    """Raise ImageRefused if an image is too large, DockerException if the disk is nearly full."""
    if size > IMAGE_BYTES:
        raise ImageRefused(f"The image is larger than {IMAGE_BYTES / GIB:g} GiB.")
    if Path(root).exists() and shutil.disk_usage(root).free < SPARE_BYTES:
        raise DockerException(f"{root} is nearly full")


def _find_image(client: docker.DockerClient, reference: str) -> Image:
    try:
        return client.images.get(reference)
    except ImageNotFound:
        raise ImageRefused(f"The engine has no image {reference}.") from None
