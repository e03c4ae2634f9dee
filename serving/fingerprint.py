"""Identify a model by digests of the files and versions that determine its answers."""

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
"""Files that determine, with the weights, which tokens a model reads and writes.

The generation settings contain the tokens that end an answer, and transformers 5 saves chat
templates in separate files.
"""


class FileHashes:
    """A cache of the sha256 of files, renewed if a file's size or modification time changes.

    The cache is a JSON file `{path: [size, mtime_ns, hex]}`.
    """

    def __init__(self, cache_file: Path) -> None:
        self._cache_file = cache_file
        self._lock = threading.Lock()

    def hash_file(self, path: Path) -> str:
        """Return the hexadecimal sha256 of one file, from the cache if the file is unchanged."""
        resolved_path = path.resolve()
        stat = resolved_path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
        with self._lock:
            hashes = self._read_hashes()
            if hashes.get(str(resolved_path), [])[:2] == stamp:
                return str(hashes[str(resolved_path)][2])
            with resolved_path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._cache_file.parent.mkdir(parents=True, exist_ok=True)
            # A name of its own: models that are loaded at once, here or in another process, share
            # the memory. What one of them writes in between is only computed again.
            with TemporaryDirectory(dir=self._cache_file.parent) as folder:
                scratch = Path(folder, "hashes.json")
                scratch.write_text(json.dumps(hashes | {str(resolved_path): [*stamp, digest]}))
                scratch.replace(self._cache_file)
        return digest

    def hash_files(self, paths: Iterable[Path]) -> str:
        """Return one hexadecimal sha256 for several files, computed from their names and digests.

        For a single file, return the file's own sha256.
        """
        digests = {path.name: self.hash_file(path) for path in paths}
        if len(digests) == 1:
            return digests.popitem()[1]
        return _hash_value(digests)

    def _read_hashes(self) -> dict[str, list[Any]]:
        try:
            hashes: dict[str, list[Any]] = json.loads(self._cache_file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return hashes


def compute_fingerprint(
    spec: ModelSpec, folder: ModelFolder, *, backend_version: str, hashes: FileHashes
) -> dict[str, str]:
    """Return the values that identify a served model, by name.

    `digest` is the first 16 hex digits of the sha256 of all other values.
    """
    # Missing ones are left out: no tokenizer has all of them.
    tokenizer_files = [
        folder.path / name for name in TOKENIZER_FILES if (folder.path / name).exists()
    ]
    if folder.weights[0].suffix == ".gguf":  # it holds tokenizer and settings as well
        tokenizer_files = [folder.weights[0]]
    config_file = folder.path / "config.json"
    settings: dict[str, Any] = {
        "config": hashes.hash_file(config_file) if config_file.exists() else None,
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
    identity_values = {
        "weights_sha256": hashes.hash_files(folder.weights),
        "tokenizer_sha256": hashes.hash_files(tokenizer_files),
        "config_sha256": _hash_value(settings),
        "backend": {"onnx": "onnxruntime", "torch": "torch"}[spec.backend],
        "backend_version": backend_version,
        "precision": spec.precision,
        "transformers": version("transformers"),
        "code": CODE_VERSION,
    }
    return {"digest": _hash_value(identity_values)[:16], **identity_values}


def _hash_value(value: Mapping[str, Any]) -> str:
    # One spelling for equal values, whatever the order of the keys.
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
