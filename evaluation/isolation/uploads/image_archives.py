"""The check of `docker save` archives before an engine loads them; nothing touches the disk."""

import json
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

from evaluation.contract import GIB, MIB
from evaluation.isolation.uploads.archives import (
    MIN_RATIO_BYTES,
    READABLE_FORMATS,
    ArchiveLimits,
    ArchiveRefused,
    Blocks,
    format_of,
    make_refusal,
    open_decompressed,
    tar_members,
)

LIMITS = ArchiveLimits(members=10_000, bytes=16 * GIB, ratio=200)
LAYER_MEMBERS = 1_000_000
MOST_JSON = 32 * MIB  # of all members that could be asked for as JSON
SAVE_CURE = "Write it with docker save, or podman save --format docker-archive."


def check_image(path: Path, limits: ArchiveLimits = LIMITS) -> int:
    """Return the unpacked size of an image archive's layers, in bytes. Raises ArchiveRefused.

    Checks every packed file in it, whether listed as a layer or not, because engines differ in what
    they read.
    """
    contents = _Contents(path, limits)
    config_name, layers = contents.listed()
    config = contents.json(config_name)
    architecture, system = config.get("architecture"), config.get("os")
    if not (isinstance(architecture, str) and architecture and system == "linux"):
        raise make_refusal(
            config_name, "it names no architecture for linux; build the image for one"
        )
    return _walk(path, {contents.file_of(layer) for layer in layers}, limits)


class _Contents:
    """The members of an image archive, with the bytes of small JSON files."""

    def __init__(self, path: Path, limits: ArchiveLimits) -> None:
        json_bytes = 0
        self._small: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._files: set[str] = set()
        for number, (info, blocks) in enumerate(_outer_members(path, limits), 1):
            name = posixpath.normpath(info.name)
            if number > limits.members:
                raise make_refusal(name, f"there are more than {limits.members:,} members")
            if name in self._files or name in self._links:
                raise make_refusal(name, "the same name is there twice")
            # Nothing is unpacked here, so links do no harm.
            if info.issym():  # docker save writes one for a layer that is there twice
                self._links[name] = posixpath.normpath(
                    posixpath.join(posixpath.dirname(name), info.linkname)
                )
            elif info.isreg() and not info.issparse():
                self._files.add(name)
                data = b""
                if info.size <= MIN_RATIO_BYTES:
                    data = b"".join(blocks)
                if data.startswith((b"{", b"[")):  # layers, however small, are no JSON
                    self._small[name] = data
                    json_bytes += len(data)
                if json_bytes > MOST_JSON:
                    raise make_refusal(
                        name, f"with it there are more than {MOST_JSON:,} bytes of JSON"
                    )
            elif not info.isdir():
                raise make_refusal(name, "it is no plain file, folder or link")

    def listed(self) -> tuple[str, list[str]]:
        """Return the names of the configuration and of the layers listed in manifest.json."""
        manifest = self.json("manifest.json", kind=list)
        if len(manifest) != 1 or not isinstance(manifest[0], Mapping):
            raise make_refusal(
                "manifest.json", f"it holds not one image but {len(manifest)}; save one"
            )
        config, layers = manifest[0].get("Config"), manifest[0].get("Layers")
        if not isinstance(config, str) or not isinstance(layers, list) or not layers:
            raise make_refusal(
                "manifest.json", f"it lists no configuration or no layers. {SAVE_CURE}"
            )
        return config, layers

    def json(self, name: str, kind: type = dict) -> Any:
        """Return the contents of a small JSON file in the archive. Raises ArchiveRefused."""
        if name not in self._small:
            raise make_refusal(name, f"it is missing or too large. {SAVE_CURE}")
        try:
            value = json.loads(self._small[name])
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kind):
            raise make_refusal(name, f"it is damaged. {SAVE_CURE}")
        return value

    def file_of(self, layer: Any) -> str:
        """Return the name of the plain file that a listed layer is or links to."""
        name = str(layer)
        if isinstance(layer, str):
            name = self._links.get(layer, layer)
        if name not in self._files:
            raise make_refusal(
                name, "manifest.json lists it as a layer, but it is not in the archive"
            )
        return name


def _outer_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[tarfile.TarInfo, Blocks]]:
    """Yield the members of the archive itself, not those of its layers."""
    with path.open("rb") as file:
        archive_format = format_of(file)
        if archive_format not in READABLE_FORMATS:
            raise ArchiveRefused(
                f"A {archive_format} archive is no image that is read here. {SAVE_CURE}"
            )
        for info, blocks in tar_members(open_decompressed(file, path.stat().st_size, limits)):
            _check_name(info.name)
            yield info, blocks


def _check_name(name: str) -> None:
    """Refuse a name that leads out of the archive. Links are allowed, as layers have many."""
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise make_refusal(name, "the name is absolute or leads out of the archive")


def _walk(path: Path, layers: set[str], limits: ArchiveLimits) -> int:
    """Return the total size of the files in all layers. Raises ArchiveRefused beyond a limit."""
    total = number = 0
    for info, blocks in _outer_members(path, limits):
        name = posixpath.normpath(info.name)
        content = BufferedReader(_Content(blocks), 64 * 1024)
        layer_format = format_of(content)
        if layer_format == "plain" and name not in layers:
            continue
        if layer_format not in READABLE_FORMATS:
            raise make_refusal(name, f"{layer_format} is not read here. {SAVE_CURE}")
        for inner, _ in tar_members(open_decompressed(content, info.size, limits)):
            _check_name(inner.name)
            total += inner.size
            number += 1
            if total > limits.bytes:
                raise make_refusal(
                    name, f"with it the layers have more than {limits.bytes:,} bytes"
                )
            if number > LAYER_MEMBERS:
                raise make_refusal(
                    name, f"with it the layers have more than {LAYER_MEMBERS:,} members"
                )
    return total


class _Content(RawIOBase):
    """A member's bytes as a forward-only file."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self._left = blocks, memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy bytes of the current block into the buffer; return how many."""
        if not self._left:
            self._left = memoryview(next(self._blocks, b""))
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count
