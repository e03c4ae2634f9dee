"""The models of one server: loaded on first use in the background, then asked through a batcher."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from .backends import backend_version, load_backend
from .batcher import Batcher
from .codecs import Answer, Codec, Logits, Piece
from .errors import (
    CannotExportError,
    LoadingError,
    MisconfiguredError,
    NotKnownError,
    ServingError,
    TooLargeError,
    UnknownError,
)
from .fingerprint import FileHashes, fingerprint
from .generation.model import LanguageModel
from .spec import WRITES, ModelFolder, ModelSpec, open_folder, shown_error
from .tokens import codec_of

logger = logging.getLogger(__name__)

MAX_ENCODINGS = 256  # of one call: texts, or windows of passages
RETRY_FAILED_SECONDS = 60.0
REMEMBER_SECONDS = 2.0  # how long the spec of a name is not looked up again
# One load at a time: imports of transformers and torch's exporter belong to the whole process.
_LOADING = threading.Lock()
_WRITING = threading.Lock()


def identify(spec: ModelSpec, folder: ModelFolder, cache_dir: Path) -> tuple[dict[str, str], Path]:
    """Return a model's fingerprint, and the folder below `cache_dir` for its ONNX file."""
    hashes = FileHashes(cache_dir / "hashes.json")
    backend = backend_version(spec, folder.kind)
    identity = fingerprint(spec, folder, backend_version=backend, hashes=hashes)
    return identity, cache_dir / "onnx" / identity["digest"]


class ServedModel:
    """A loaded model with its queue."""

    def __init__(
        self,
        spec: ModelSpec,
        cache_dir: Path,
        *,
        max_queued: int,
        folder: ModelFolder | None = None,
    ) -> None:
        """Load the model. This takes seconds, or minutes if it must be exported first.

        Raises MisconfiguredError.
        """
        folder = folder or open_folder(spec)
        identity, exports = identify(spec, folder, cache_dir)
        try:
            backend, tokens = load_backend(spec, folder, exports=exports)
        except CannotExportError as error:
            if spec.precision != "fp32":  # what was asked for, torch does not have
                raise
            logger.warning("%s It is served by torch.", error)
            spec = replace(spec, backend="torch")
            identity, exports = identify(spec, folder, cache_dir)
            backend, tokens = load_backend(spec, folder, exports=exports)
        self.codec: Codec = codec_of(folder, tokens)
        self.fields = folder.fields
        self.digest = identity["digest"]
        self.info: dict[str, Any] = {
            "name": spec.name,
            "kind": folder.kind,
            "labels": None if folder.labels is None else list(folder.labels),
            "fields": list(folder.fields),
            "fingerprint": identity,
        }
        self._batcher = Batcher[Piece, Logits](
            backend.run,
            workers=backend.workers,
            max_batch=backend.max_batch,
            similar=backend.similar,
            max_queued=max_queued,
            name=spec.name,
        )

    def submit(
        self, rows: Sequence[Mapping[str, str]], *, deadline: float
    ) -> "Future[list[Answer]]":
        """Queue inputs; return a future for the answers, in order. Raises ServingError.

        deadline: a time of time.monotonic(); it only applies while the call is queued.
        """
        row_encodings = [self.codec.encode(row) for row in rows]
        pieces = [(piece, len(piece)) for piece in chain.from_iterable(row_encodings)]
        if len(pieces) > MAX_ENCODINGS:
            raise TooLargeError(
                f"The inputs make {len(pieces)} pieces for the model; at most {MAX_ENCODINGS} are "
                "taken at once. Send fewer or shorter inputs."
            )

        def answers(logits: list[Logits]) -> list[Answer]:
            remaining_logits = iter(logits)
            row_answers = []
            for row, encodings in zip(rows, row_encodings, strict=True):
                of_row = list(islice(remaining_logits, len(encodings)))
                row_answers.append(self.codec.decode(row, encodings, of_row))
            return row_answers

        return self._batcher.submit(pieces, answers, deadline=deadline)

    def close(self) -> None:
        """Finish running calls and stop."""
        self._batcher.close()


@dataclass
class _Entry:
    """A model in the registry: loaded, failed, or (with neither `model` nor `error`) loading."""

    spec: ModelSpec
    model: ServedModel | LanguageModel | None = None
    error: ServingError | None = None
    failed_at: float = 0.0
    looked_up_at: float = 0.0


class ModelRegistry:
    """The models of a server, by task and name.

    `resolve` returns the spec of a name (None if unknown), `names` lists the names. Models of
    several tasks may share a name: `resolve` is first called with `TASK/NAME`, where TASK is the
    task's id, and `names` lists them in this form if the name alone means another model. A model
    whose spec has changed is reloaded; loading is retried a minute after a failure.
    """

    def __init__(
        self,
        resolve: Callable[[str], ModelSpec | None],
        names: Callable[[], Iterable[str]],
        cache_dir: Path,
        *,
        max_queued: int = 64,
    ) -> None:
        self.names = names
        self._resolve, self._cache_dir, self._max_queued = resolve, cache_dir, max_queued
        self._entries: dict[tuple[int | None, str], _Entry] = {}
        self._begun: set[str] = set()
        self._language_models: dict[Path, LanguageModel] = {}
        self._lock = threading.Lock()

    def recent(self, name: str, task: int | None = None) -> ServedModel | LanguageModel | None:
        """Return the model that `get` returned within the last REMEMBER_SECONDS, else None.

        Never blocks, so event loops may call it.
        """
        entry = self._entries.get((task, name))
        if entry is None or not _may_ask(task, entry.spec):
            return None
        is_recent = time.monotonic() - entry.looked_up_at < REMEMBER_SECONDS
        return entry.model if is_recent else None

    def get(self, name: str, task: int | None = None) -> ServedModel | LanguageModel:
        """Return the loaded model, or start loading it.

        task: the id of the calling task, which cannot see other tasks' models; None for any model.
        Raises UnknownError, LoadingError while it loads, and the error with which loading ended.
        """
        # A task's own model goes before one that has the name by itself.
        own = None if task is None else self._resolve(f"{task}/{name}")
        spec = own or self._resolve(name)
        if spec is None or not _may_ask(task, spec):
            raise UnknownError(f"There is no model {name!r} here. GET /models lists them.")
        key = (spec.task, spec.name)
        # Under the lock only the table is changed; loading runs in a thread of its own.
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.spec != spec or self._is_due(entry):
                old = entry.model if entry else None
                if old and not isinstance(old, LanguageModel):  # those may have other names
                    threading.Thread(target=old.close, daemon=True).start()
                entry = self._entries[key] = _Entry(spec)
                threading.Thread(
                    target=self._load, args=[entry], name=f"load-{name}", daemon=True
                ).start()
            entry.looked_up_at = time.monotonic()
        # Without the traceback, which would grow each time the error is raised again.
        if entry.error:
            raise entry.error.with_traceback(None)
        if entry.model is None:
            raise LoadingError(f"The model {name!r} is being loaded. Try again soon.")
        return entry.model

    def load_new(self) -> None:
        """Start loading models that nobody has called yet, so that first callers do not wait."""
        for name in self.names():
            if name not in self._begun:
                try:
                    self.get(name)
                except NotKnownError:
                    raise
                except ServingError:  # its first caller hears it
                    pass
                self._begun.add(name)

    def known_names(self, task: int | None = None) -> list[str]:
        """Return the names of the models that a task may call, sorted. None for all models."""
        return [spec.name for spec in self._known(task)]

    def writers(self, task: int | None = None) -> list[str]:
        """Return the names of the language models. Reads folders, so it blocks event loops."""
        return [spec.name for spec in self._known(task) if _writes(spec)]

    def _known(self, task: int | None) -> list[ModelSpec]:
        specs = [self._resolve(name) for name in sorted(self.names())]
        return [spec for spec in specs if spec is not None and _may_ask(task, spec)]

    def close(self) -> None:
        """Stop every model."""
        with self._lock:
            models = [entry.model for entry in self._entries.values() if entry.model]
        for model in models:
            model.close()

    def _loaded(self, spec: ModelSpec, folder: ModelFolder) -> ServedModel:
        with _LOADING:
            return ServedModel(spec, self._cache_dir, max_queued=self._max_queued, folder=folder)

    def _written(self, spec: ModelSpec, folder: ModelFolder) -> LanguageModel | None:
        """Return the language model of a folder, shared by all of its names; None for other kinds.

        It is converted in another process, so that other models can load meanwhile.
        """
        if folder.kind != WRITES:
            return None
        identity, exports = identify(spec, folder, self._cache_dir)
        # Two names of the same model would otherwise prepare and load it twice.
        with _WRITING:
            if exports not in self._language_models:
                self._language_models[exports] = LanguageModel(
                    spec, folder, identity, exports, max_queued=self._max_queued
                )
            return self._language_models[exports]

    def _is_due(self, entry: _Entry) -> bool:
        return bool(entry.error) and time.monotonic() - entry.failed_at > RETRY_FAILED_SECONDS

    def _load(self, entry: _Entry) -> None:
        started_at = time.monotonic()
        try:
            folder = open_folder(entry.spec)
            entry.model = self._written(entry.spec, folder) or self._loaded(entry.spec, folder)
        except Exception as error:
            logger.exception("%s: not loaded", entry.spec.name)
            entry.failed_at = time.monotonic()
            # Kept and raised to every caller, until it is time to try again.
            entry.error = shown_error(entry.spec, error)
        else:
            seconds = time.monotonic() - started_at
            gc.collect()
            gc.freeze()  # the garbage collector skips a model and its libraries from now on
            logger.info("%s: ready after %.1f s", entry.spec.name, seconds)


def _may_ask(task: int | None, spec: ModelSpec) -> bool:
    return task is None or spec.task == task


def _writes(spec: ModelSpec) -> bool:
    try:
        return open_folder(spec).kind == WRITES
    except MisconfiguredError:
        return False
