"""Check `docker save` archives before an engine loads them. Nothing is written to disk."""

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
    detect_format,
    iterate_tar_members,
    make_refusal,
    open_decompressed,
)

IMAGE_LIMITS = ArchiveLimits(members=10_000, bytes=16 * GIB, ratio=200)
MAX_LAYER_MEMBERS = 1_000_000
MAX_JSON_BYTES = 32 * MIB  # for all members that could be read as JSON
SAVE_ADVICE = "Write it with docker save, or podman save --format docker-archive."


def check_image_archive(path: Path, limits: ArchiveLimits = IMAGE_LIMITS) -> int:
    """Return the unpacked size of an image archive's layers, in bytes. Raises ArchiveRefused.

    Checks every packed file in it, whether listed as a layer or not, because engines differ in what
    they read.
    """
    contents = _ArchiveContents(path, limits)
    config_name, layers = contents.read_manifest()
    config = contents.read_json(config_name)
    architecture, system = config.get("architecture"), config.get("os")
    if not (isinstance(architecture, str) and architecture and system == "linux"):
        raise make_refusal(
            config_name, "it names no architecture for linux; build the image for one"
        )
    return _measure_layers(path, {contents.get_file_name(layer) for layer in layers}, limits)


class _ArchiveContents:
    """The members of an image archive, with the bytes of small JSON files."""

    def __init__(self, path: Path, limits: ArchiveLimits) -> None:
        json_bytes = 0
        self._json_data: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._files: set[str] = set()
        for number, (info, blocks) in enumerate(_iterate_outer_members(path, limits), 1):
            name = posixpath.normpath(info.name)
            if number > limits.members:
                raise make_refusal(name, f"there are more than {limits.members:,} members")
            if name in self._files or name in self._links:
                raise make_refusal(name, "the same name is there twice")
            # Nothing is unpacked here, so links do no harm.
            if info.issym():  # docker save writes one for a repeated layer
                self._links[name] = posixpath.normpath(
                    posixpath.join(posixpath.dirname(name), info.linkname)
                )
            elif info.isreg() and not info.issparse():
                self._files.add(name)
                data = b""
                if info.size <= MIN_RATIO_BYTES:
                    data = b"".join(blocks)
                if data.startswith((b"{", b"[")):  # layers are never JSON, even small ones
                    self._json_data[name] = data
                    json_bytes += len(data)
                if json_bytes > MAX_JSON_BYTES:
                    raise make_refusal(
                        name, f"with it there are more than {MAX_JSON_BYTES:,} bytes of JSON"
                    )
            elif not info.isdir():
                raise make_refusal(name, "it isn't a plain file, folder or link")

    def read_manifest(self) -> tuple[str, list[str]]:
        """Return the names of the configuration and of the layers listed in manifest.json.

        Raises ArchiveRefused unless the archive has exactly one image.
        """
        manifest = self.read_json("manifest.json", expected_type=list)
        if len(manifest) != 1 or not isinstance(manifest[0], Mapping):
            raise make_refusal(
                "manifest.json", f"it contains {len(manifest)} images instead of one; save only one"
            )
        config, layers = manifest[0].get("Config"), manifest[0].get("Layers")
        if not isinstance(config, str) or not isinstance(layers, list) or not layers:
            raise make_refusal(
                "manifest.json", f"it lists no configuration or no layers. {SAVE_ADVICE}"
            )
        return config, layers

    def read_json(self, name: str, expected_type: type = dict) -> Any:
        """Return the contents of a small JSON file in the archive.

        expected_type: the type that the contents must have. Raises ArchiveRefused.
        """
        if name not in self._json_data:
            raise make_refusal(name, f"it is missing or too large. {SAVE_ADVICE}")
        try:
            value = json.loads(self._json_data[name])
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, expected_type):
            raise make_refusal(name, f"it is damaged. {SAVE_ADVICE}")
        return value

    def get_file_name(self, layer: Any) -> str:
        """Return the name of the plain file that a listed layer is or links to.

        Raises ArchiveRefused if the archive lacks it.
        """
        name = str(layer)
        if isinstance(layer, str):
            name = self._links.get(layer, layer)
        if name not in self._files:
            raise make_refusal(
                name, "manifest.json lists it as a layer, but it is not in the archive"
            )
        return name


def _iterate_outer_members(
    path: Path, limits: ArchiveLimits
) -> Iterator[tuple[tarfile.TarInfo, Blocks]]:
    """Yield the members of the archive itself, not those of its layers. Raises ArchiveRefused."""
    with path.open("rb") as file:
        archive_format = detect_format(file)
        if archive_format not in READABLE_FORMATS:
            raise ArchiveRefused(
                f"We don't read {archive_format} archives as images. {SAVE_ADVICE}"
            )
        for info, blocks in iterate_tar_members(
            open_decompressed(file, path.stat().st_size, limits)
        ):
            _check_name(info.name)
            yield info, blocks


def _check_name(name: str) -> None:
    """Refuse a name that leads out of the archive. Raises ArchiveRefused.

    Links are allowed, because layers contain many.
    """
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise make_refusal(name, "the name is absolute or leads out of the archive")


def _measure_layers(path: Path, layers: set[str], limits: ArchiveLimits) -> int:
    """Return the total size of the files in all layers. Raises ArchiveRefused beyond a limit."""
    total = number = 0
    for info, blocks in _iterate_outer_members(path, limits):
        name = posixpath.normpath(info.name)
        content = BufferedReader(_MemberFile(blocks), 64 * 1024)
        layer_format = detect_format(content)
        if layer_format == "plain" and name not in layers:
            continue
        if layer_format not in READABLE_FORMATS:
            raise make_refusal(name, f"{layer_format} is not read here. {SAVE_ADVICE}")
        for layer_member, _ in iterate_tar_members(open_decompressed(content, info.size, limits)):
            _check_name(layer_member.name)
            total += layer_member.size
            number += 1
            if total > limits.bytes:
                raise make_refusal(
                    name, f"with it the layers have more than {limits.bytes:,} bytes"
                )
            if number > MAX_LAYER_MEMBERS:
                raise make_refusal(
                    name, f"with it the layers have more than {MAX_LAYER_MEMBERS:,} members"
                )
    return total


class _MemberFile(RawIOBase):
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
