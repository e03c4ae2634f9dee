"""What answered: digests of the files and versions that decide a model's answers."""

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .spec import ModelFolder, ModelSpec

# Raise it when a change of this package can change an answer.
CODE_VERSION = "3"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)
"""What decides, with the weights, which tokens a model reads and writes: the end of an answer
stands in the generation settings, and transformers 5 saves chat templates in files of their own."""


class FileHashes:
    """A cache of files' sha256. A file is read again only if its size or modification time differs.

    The cache is a JSON file `{path: [size, mtime_ns, hex]}`.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._lock = threading.Lock()

    def of(self, path: Path) -> str:
        """Return the hex sha256 of one file."""
        real = path.resolve()
        stat = real.stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
        with self._lock:
            hashes = self._read()
            if hashes.get(str(real), [])[:2] == stamp:
                return str(hashes[str(real)][2])
            with real.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            # A name of its own: models that are loaded at once, here or in another process, share
            # the memory. What one of them writes in between is only computed again.
            with TemporaryDirectory(dir=self._memory.parent) as folder:
                scratch = Path(folder, "hashes.json")
                scratch.write_text(json.dumps(hashes | {str(real): [*stamp, digest]}))
                scratch.replace(self._memory)
        return digest

    def of_all(self, paths: Iterable[Path]) -> str:
        """Return a hex sha256 of several files, over their names and digests.

        For a single file, return the file's own sha256.
        """
        digests = {path.name: self.of(path) for path in paths}
        if len(digests) == 1:
            return digests.popitem()[1]
        return _digest(digests)

    def _read(self) -> dict[str, list[Any]]:
        try:
            hashes: dict[str, list[Any]] = json.loads(self._memory.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return hashes


def fingerprint(
    spec: ModelSpec, folder: ModelFolder, *, backend_version: str, hashes: FileHashes
) -> dict[str, str]:
    """Return a served model's identity. `digest` is 16 hex digits of the sha256 of the rest."""
    # Missing ones are left out: no tokenizer has all of them.
    tokenizer = [folder.path / name for name in TOKENIZER_FILES if (folder.path / name).exists()]
    if folder.weights[0].suffix == ".gguf":  # it holds tokenizer and settings as well
        tokenizer = [folder.weights[0]]
    config = folder.path / "config.json"
    settings: dict[str, Any] = {
        "config": hashes.of(config) if config.exists() else None,
        "kind": folder.kind,
        "fields": folder.fields,
        "output": folder.output,
        "labels": folder.labels,
        "max_length": folder.max_length,
    }
    # Left out where they are empty, so that other models keep the fingerprints they had before.
    if folder.context:
        settings["context"] = folder.context
    if folder.pictures:
        settings["pictures"] = asdict(folder.pictures)
    parts = {
        "weights_sha256": hashes.of_all(folder.weights),
        "tokenizer_sha256": hashes.of_all(tokenizer),
        "config_sha256": _digest(settings),
        "backend": {"onnx": "onnxruntime", "torch": "torch"}[spec.backend],
        "backend_version": backend_version,
        "precision": spec.precision,
        "transformers": version("transformers"),
        "code": CODE_VERSION,
    }
    return {"digest": _digest(parts)[:16], **parts}


def _digest(value: Mapping[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
