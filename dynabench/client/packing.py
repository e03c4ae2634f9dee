"""A model's folder as one file: the same folder always gives the same bytes."""

import hashlib
import os
import tarfile
from pathlib import Path

ALLOWED = (".json", ".safetensors", ".txt", ".model", ".md")
"""What transformers writes: configuration, weights without code in them, tokenizer, card."""
NAMES = ("LICENSE", "NOTICE")
SAVE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)"


def allowed_files(folder: Path) -> list[Path]:
    """The files at the top of a model's folder that a server takes, by name.

    Raises ValueError where it is no folder of a model.
    """
    found = sorted(path for path in folder.iterdir() if _is_allowed(path))
    if folder / "config.json" not in found:
        inner = next(folder.glob("*/config.json"), None)
        mend = f"Name {inner.parent}." if inner else f"Save model and tokenizer: {SAVE}"
        raise ValueError(f"config.json is missing in {folder}. {mend}")
    return found


def _is_allowed(path: Path) -> bool:
    known = path.suffix in ALLOWED or path.name in NAMES
    return path.is_file() and known and not path.name.startswith(".")


def packed(path: Path, folder: Path) -> Path:
    """The file to upload for a model: a tar of its folder, made in `folder`, or the file itself.

    Raises FileNotFoundError, ValueError.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}.")
    if not path.is_dir():
        return path
    files = allowed_files(path)
    archive = folder / f"{own_name(path)}.tar"
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            member = tarfile.TarInfo(file.name)
            member.size = file.stat().st_size  # of what a link leads to
            with file.open("rb") as source:
                tar.addfile(member, source)
    return archive


def own_name(path: Path) -> str:
    """What a path is called, also where it is `.`; of a link its own name."""
    return Path(os.path.abspath(path)).name


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
