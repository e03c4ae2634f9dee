"""The models of one server: loaded on first use, then called through a batcher."""

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

from .backends import build_backend_version, load_backend
from .batcher import Batcher
from .codecs import Answer, Codec, Logits, ModelInput
from .errors import (
    CannotExportError,
    LoadingError,
    MisconfiguredError,
    ModelListUnavailableError,
    NotFoundError,
    ServingError,
    TooLargeError,
)
from .fingerprint import FileHashes, compute_fingerprint
from .generation.model import LanguageModel
from .spec import TEXT_GENERATION, ModelFolder, ModelSpec, build_shown_error, open_folder
from .tokens import build_codec

logger = logging.getLogger(__name__)

MAX_ENCODINGS = 256  # of one call: texts, or windows of passages
RETRY_FAILED_SECONDS = 60.0
SPEC_CACHE_SECONDS = 2.0  # how long the spec of a name is not looked up again
# One load at a time: imports of transformers and torch's exporter belong to the whole process.
_LOADING_LOCK = threading.Lock()
_WRITING_LOCK = threading.Lock()


def compute_identity(
    spec: ModelSpec, folder: ModelFolder, cache_dir: Path
) -> tuple[dict[str, str], Path]:
    """Return a model's fingerprint, and the folder below `cache_dir` for its ONNX file.

    Reads all files of the model, unless their hashes are cached. The folder may not exist yet.
    """
    hashes = FileHashes(cache_dir / "hashes.json")
    backend = build_backend_version(spec, folder.kind)
    identity = compute_fingerprint(spec, folder, backend_version=backend, hashes=hashes)
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

        If ONNX Runtime cannot run the model in fp32, torch serves it. Raises MisconfiguredError.
        """
        folder = folder or open_folder(spec)
        identity, export_folder = compute_identity(spec, folder, cache_dir)
        try:
            backend, model_tokenizer = load_backend(spec, folder, export_folder=export_folder)
        except CannotExportError as error:
            if spec.precision != "fp32":  # what was asked for, torch does not have
                raise
            logger.warning("%s It is served by torch.", error)
            spec = replace(spec, backend="torch")
            identity, export_folder = compute_identity(spec, folder, cache_dir)
            backend, model_tokenizer = load_backend(spec, folder, export_folder=export_folder)
        self.codec: Codec = build_codec(folder, model_tokenizer)
        self.fields = folder.fields
        self.digest = identity["digest"]
        self.info: dict[str, Any] = {
            "name": spec.name,
            "kind": folder.kind,
            "labels": None if folder.labels is None else list(folder.labels),
            "fields": list(folder.fields),
            "fingerprint": identity,
        }
        self._batcher = Batcher[ModelInput, Logits](
            backend.run,
            workers=backend.workers,
            max_batch=backend.max_batch,
            max_size_ratio=backend.max_size_ratio,
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

        def decode_answers(logits: list[Logits]) -> list[Answer]:
            remaining_logits = iter(logits)
            row_answers = []
            for row, encodings in zip(rows, row_encodings, strict=True):
                row_logits = list(islice(remaining_logits, len(encodings)))
                row_answers.append(self.codec.decode(row, encodings, row_logits))
            return row_answers

        return self._batcher.submit(pieces, decode_answers, deadline=deadline)

    def close(self) -> None:
        """Finish running calls, reject queued ones, and stop the model's threads."""
        self._batcher.close()


@dataclass
class _Entry:
    """A model in the registry: loaded, failed, or (with neither `model` nor `error`) loading.

    failed_at, looked_up_at: times of time.monotonic().
    """

    spec: ModelSpec
    model: ServedModel | LanguageModel | None = None
    error: ServingError | None = None
    failed_at: float = 0.0
    looked_up_at: float = 0.0


class ModelRegistry:
    """The models of a server, by task and name.

    `resolve` returns the spec of a name (None if unknown), `names` lists the names. Models of
    several tasks may share a name. So `resolve` is first called with `TASK/NAME`, where TASK is the
    task's id. `names` uses this form for a model if the plain name means another model. If a spec
    changes, its model is reloaded. Loading is retried a minute after a failure.
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
        self._begun_names: set[str] = set()
        self._language_models: dict[Path, LanguageModel] = {}
        self._lock = threading.Lock()

    def find_recent(self, name: str, task: int | None = None) -> ServedModel | LanguageModel | None:
        """Return the model that `get` returned within the last SPEC_CACHE_SECONDS, otherwise None.

        Never blocks, so event loops may call it.
        """
        entry = self._entries.get((task, name))
        if entry is None or not _may_call(task, entry.spec):
            return None
        is_recent = time.monotonic() - entry.looked_up_at < SPEC_CACHE_SECONDS
        return entry.model if is_recent else None

    def get(self, name: str, task: int | None = None) -> ServedModel | LanguageModel:
        """Return the loaded model. If it is not loaded, start loading it and raise LoadingError.

        task: the id of the calling task, which cannot see other tasks' models; None for any model.
        Raises NotFoundError, LoadingError, and the error with which loading ended.
        """
        # A task's own model goes before one that has the name by itself.
        own_spec = None if task is None else self._resolve(f"{task}/{name}")
        spec = own_spec or self._resolve(name)
        if spec is None or not _may_call(task, spec):
            raise NotFoundError(f"There is no model {name!r} here. GET /models lists them.")
        key = (spec.task, spec.name)
        # Under the lock only the table is changed; loading runs in a thread of its own.
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.spec != spec or self._is_retry_due(entry):
                old_model = entry.model if entry else None
                # Language models are not closed, since they may have other names.
                if old_model and not isinstance(old_model, LanguageModel):
                    threading.Thread(target=old_model.close, daemon=True).start()
                entry = self._entries[key] = _Entry(spec)
                threading.Thread(
                    target=self._load_entry, args=[entry], name=f"load-{name}", daemon=True
                ).start()
            entry.looked_up_at = time.monotonic()
        # Without the traceback, which would grow each time the error is raised again.
        if entry.error:
            raise entry.error.with_traceback(None)
        if entry.model is None:
            raise LoadingError(f"The model {name!r} is being loaded. Try again soon.")
        return entry.model

    def load_new_models(self) -> None:
        """Start loading models that nobody has called yet, so that their first callers do not wait.

        Raises ModelListUnavailableError.
        """
        for name in self.names():
            if name not in self._begun_names:
                try:
                    self.get(name)
                except ModelListUnavailableError:
                    raise
                except ServingError:  # its first caller hears it
                    pass
                self._begun_names.add(name)

    def list_known_names(self, task: int | None = None) -> list[str]:
        """Return the sorted names of the models that a task may call.

        task: the task's id; None for all models.
        """
        return [spec.name for spec in self._list_known_specs(task)]

    def list_language_models(self, task: int | None = None) -> list[str]:
        """Return the names of the language models that a task may call.

        task: the task's id; None for all models. Reads folders, so it blocks event loops.
        """
        return [spec.name for spec in self._list_known_specs(task) if _is_language_model(spec)]

    def _list_known_specs(self, task: int | None) -> list[ModelSpec]:
        specs = [self._resolve(name) for name in sorted(self.names())]
        return [spec for spec in specs if spec is not None and _may_call(task, spec)]

    def close(self) -> None:
        """Stop every model. See `ServedModel.close` and `LanguageModel.close`."""
        with self._lock:
            models = [entry.model for entry in self._entries.values() if entry.model]
        for model in models:
            model.close()

    def _load_served_model(self, spec: ModelSpec, folder: ModelFolder) -> ServedModel:
        with _LOADING_LOCK:
            return ServedModel(spec, self._cache_dir, max_queued=self._max_queued, folder=folder)

    def _load_language_model(self, spec: ModelSpec, folder: ModelFolder) -> LanguageModel | None:
        """Return the language model of a folder, shared by all of its names; None for other kinds.

        It is converted in another process, so that other models can load in the meantime.
        """
        if folder.kind != TEXT_GENERATION:
            return None
        identity, export_folder = compute_identity(spec, folder, self._cache_dir)
        # Two names of the same model would otherwise prepare and load it twice.
        with _WRITING_LOCK:
            if export_folder not in self._language_models:
                self._language_models[export_folder] = LanguageModel(
                    spec, folder, identity, export_folder, max_queued=self._max_queued
                )
            return self._language_models[export_folder]

    def _is_retry_due(self, entry: _Entry) -> bool:
        return bool(entry.error) and time.monotonic() - entry.failed_at > RETRY_FAILED_SECONDS

    def _load_entry(self, entry: _Entry) -> None:
        started_at = time.monotonic()
        try:
            folder = open_folder(entry.spec)
            entry.model = self._load_language_model(entry.spec, folder) or self._load_served_model(
                entry.spec, folder
            )
        except Exception as error:
            logger.exception("%s: not loaded", entry.spec.name)
            entry.failed_at = time.monotonic()
            # Kept and raised to every caller, until it is time to try again.
            entry.error = build_shown_error(entry.spec, error)
        else:
            seconds = time.monotonic() - started_at
            gc.collect()
            gc.freeze()  # the garbage collector skips a model and its libraries from now on
            logger.info("%s: ready after %.1f s", entry.spec.name, seconds)


def _may_call(task: int | None, spec: ModelSpec) -> bool:
    return task is None or spec.task == task


def _is_language_model(spec: ModelSpec) -> bool:
    try:
        return open_folder(spec).kind == TEXT_GENERATION
    except MisconfiguredError:
        return False
