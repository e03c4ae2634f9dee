"""A model's folder as one file: the same folder always gives the same bytes."""

import hashlib
import os
import tarfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ALLOWED = (".json", ".safetensors", ".txt", ".model", ".md", ".jinja")
"""What transformers writes: configuration, weights without code in them, tokenizer, card."""
NAMES = ("LICENSE", "NOTICE")
CONFIGS = {"config.json", "adapter_config.json"}
"""Of a model, and of a LoRA adapter, as peft saves it."""
SAVE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)"


def allowed_files(folder: Path) -> list[Path]:
    """The files at the top of a model's folder that a server takes, by name.

    Raises ValueError where it is no folder of a model.
    """
    found = sorted(path for path in folder.iterdir() if _is_allowed(path))
    if CONFIGS.isdisjoint(path.name for path in found):
        inner = next(folder.glob("*/config.json"), None)
        mend = f"Name {inner.parent}." if inner else f"Save model and tokenizer: {SAVE}"
        raise ValueError(f"config.json is missing in {folder}. {mend}")
    if not any(path.suffix == ".safetensors" for path in found):
        raise ValueError(
            f"There are no weights in {folder} that a server takes. Save them as safetensors: "
            "model.save_pretrained(folder, safe_serialization=True)"
        )
    return found


def _is_allowed(path: Path) -> bool:
    known = path.suffix in ALLOWED or path.name in NAMES
    return path.is_file() and known and not path.name.startswith(".")


def size_of(path: Path) -> int:
    """How many bytes of a file or a model's folder are to be sent, known before any is read.

    Raises FileNotFoundError, ValueError.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}.")
    files = allowed_files(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def packed(path: Path) -> IO[bytes]:
    """What is uploaded of a path: a tar of a model's folder, or the file itself; it is open.

    The tar has no name on the disk, so whatever ends this process leaves nothing of it behind.
    Raises FileNotFoundError, ValueError.
    """
    if not path.is_dir():
        return path.open("rb")
    files = allowed_files(path)
    archive = TemporaryFile()  # noqa: SIM115 (its caller closes it)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            member = tarfile.TarInfo(file.name)
            member.size = file.stat().st_size  # of what a link leads to
            with file.open("rb") as source:
                tar.addfile(member, source)
    return archive


def packed_name(path: Path) -> str:
    """What that is called."""
    return f"{own_name(path)}.tar" if path.is_dir() else path.name


def own_name(path: Path) -> str:
    """What a path is called, also where it is `.`; of a link its own name."""
    return Path(os.path.abspath(path)).name


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return digest_in(file)


def digest_in(file: IO[bytes]) -> str:
    """The same of an open file, from its start."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
