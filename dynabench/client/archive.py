"""Packing of a model's folder into one file. The same folder always gives the same bytes."""

import hashlib
import os
import tarfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ALLOWED_SUFFIXES = (".json", ".safetensors", ".txt", ".model", ".md", ".jinja")
"""The endings of files that transformers writes: configuration, weights, tokenizer, card.

None of these formats can contain code that runs when a file is loaded.
"""
ALLOWED_NAMES = ("LICENSE", "NOTICE")
"""The names of files that are accepted whatever their ending."""
CONFIG_NAMES = {"config.json", "adapter_config.json"}
"""The configuration files of a model, and of a LoRA adapter saved by peft."""
SAVE_EXAMPLE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)"


def list_allowed_files(folder: Path) -> list[Path]:
    """Return the files in a model folder that a server accepts, sorted by name.

    Raises ValueError if the folder contains no model.
    """
    files = sorted(path for path in folder.iterdir() if _is_allowed(path))
    if CONFIG_NAMES.isdisjoint(path.name for path in files):
        # Often somebody names the folder above the model's.
        inner_config = next(folder.glob("*/config.json"), None)
        remedy = (
            f"Use {inner_config.parent}."
            if inner_config
            else f"Save the model and its tokenizer: {SAVE_EXAMPLE}"
        )
        raise ValueError(f"config.json is missing from {folder}. {remedy}")
    if not any(path.suffix == ".safetensors" for path in files):
        raise ValueError(
            f"{folder} contains no weights in safetensors format. Save them like this: "
            "model.save_pretrained(folder, safe_serialization=True)"
        )
    return files


def _is_allowed(path: Path) -> bool:
    """Return whether a server accepts a file with this name; hidden files are left out."""
    is_allowed_name = path.suffix in ALLOWED_SUFFIXES or path.name in ALLOWED_NAMES
    return path.is_file() and is_allowed_name and not path.name.startswith(".")


def measure_size(path: Path) -> int:
    """Return the number of bytes to upload for a file or a model folder without reading it.

    Raises FileNotFoundError or ValueError.
    """
    if not path.exists():
        raise FileNotFoundError(f"File not found: {path}.")
    files = list_allowed_files(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def open_packed(path: Path) -> IO[bytes]:
    """Open the upload for a path: a tar of a model folder, or the file itself.

    The tar is an unnamed temporary file, so it vanishes even if the process is killed. Raises
    FileNotFoundError or ValueError.
    """
    if not path.is_dir():
        return path.open("rb")
    files = list_allowed_files(path)
    archive = TemporaryFile()  # noqa: SIM115 (its caller closes it)
    # A named format: Python's default may change, and the bytes must not.
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            # Without times, owners and modes, so that the same files give the same bytes.
            member = tarfile.TarInfo(file.name)
            member.size = file.stat().st_size  # of what a link leads to
            with file.open("rb") as source:
                tar.addfile(member, source)
    return archive


def build_packed_name(path: Path) -> str:
    """Return the file name of what `open_packed` opens."""
    return f"{find_own_name(path)}.tar" if path.is_dir() else path.name


def find_own_name(path: Path) -> str:
    """Return the last part of a path, also for `.`.

    For a symbolic link, return the link's own name.
    """
    # Not `resolve`, which would name what a link leads to.
    return Path(os.path.abspath(path)).name


def compute_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return compute_file_digest(file)


def compute_file_digest(file: IO[bytes]) -> str:
    """Return the SHA-256 of an open file, read from its start, in hexadecimal digits."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
