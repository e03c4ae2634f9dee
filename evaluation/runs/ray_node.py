"""The work of a node of a Ray cluster: running a shard in its sandbox, or doing an errand.

No Django: a node has no database. It receives examples, and a model by its digest. The environment
variables MODEL_CACHE and MODEL_CACHE_GIB set the folder and the size of its model cache.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.contract import GIB, Ending, Runnable
from evaluation.heartbeat import CHUNK_BYTES, skip_beat
from evaluation.isolation.sandbox.choose import choose_runner
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.runs.model_cache import open_cached_folder, unpack_folder

ROOT = Path(__file__).resolve().parents[2]
DIGESTED_CODE = (
    "evaluation/contract.py",
    "evaluation/isolation/sandbox",
    "evaluation/training",
    "evaluation/runs/ray_models.py",
    "serving",
)
"""The code that determines what models learn and answer."""
PieceGetter = Callable[[Any], bytes]
"""Returns the bytes behind a reference to Ray's object store."""


class ReleaseMismatch(Exception):
    """Raised when a node's code differs from the queue's, because its answers might differ too."""


def compute_release_digest() -> str:
    """Return a digest of the code that decides what models learn and answer."""
    digest = hashlib.sha256()
    for name in DIGESTED_CODE:
        paths = [ROOT / name]
        if paths[0].is_dir():
            paths = sorted(paths[0].rglob("*.py"))
        for path in paths:
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Parcel:
    """Files of a model in pieces: an uncompressed tar of a folder, or an archive of an image.

    digest: of the folder's files, or the image's id. pieces: references to Ray's object store.
    """

    digest: str
    pieces: Sequence[Any]


@dataclass(frozen=True)
class ShardWork:
    """The work of one shard. runner: `docker` or `process`.

    model: without folders, which are elsewhere on the node. inputs: lines of examples.
    key: the name of the container, for this attempt and shard. release: the queue's code digest.
    """

    key: str
    model: Runnable
    runner: str
    limits: Limits
    inputs: bytes
    release: str
    folder: Parcel | None = None
    lora: Parcel | None = None
    image: Parcel | None = None


@dataclass(frozen=True)
class ShardResult:
    """The result of a shard: its ending, its answers as lines, and the runner's name."""

    ending: Ending
    answers: Sequence[bytes]
    runner: str


@dataclass(frozen=True)
class Errand:
    """A function to call on a node, with its arguments.

    function: a top-level function of a module without Django. The items that it yields are passed
    on; bytes go to the request's file. folders: passed to the function by name. release: the
    queue's code digest.
    """

    function: Callable[..., Iterator[Any]]
    arguments: Sequence[Any]
    folders: Mapping[str, Parcel] = field(default_factory=dict)
    release: str = ""


ITEM, RAISED = "item", "raised"
RunnerFactory = Callable[[Runnable, str, str | None], Runner]


def run_shard(work: ShardWork, make_runner: RunnerFactory = choose_runner) -> ShardResult:
    """Run a shard to its end and return its result. If the node dies, Ray calls this on another.

    Raises ReleaseMismatch, and ValueError if the files that arrived differ from those sent.
    """
    _check_release(work.release)
    import ray

    cache = find_model_cache()
    with ExitStack() as stack:
        work_folder = stack.enter_context(_open_work_folder(cache / "sandboxes", work.key))
        model = replace(
            work.model,
            folder=_open_folder(stack, cache, work.folder, ray.get),
            lora=_open_folder(stack, cache, work.lora, ray.get),
        )
        if model.gpu:
            model = replace(model, gpu=str(ray.get_gpu_ids()[0]))  # the GPU that Ray reserved
        if work.image:
            _load_image(work.image, work_folder, ray.get)
        inputs = work_folder / "inputs.jsonl"
        inputs.write_bytes(work.inputs)
        answers: list[bytes] = []
        runner = make_runner(model, work.key, work.runner)
        ending = runner.run(model, inputs, work.limits, take=answers.append, beat=skip_beat)
    return ShardResult(ending, answers, runner.name)


class ErrandActor:
    """A Ray actor that does one errand after the other, and ends with its job."""

    def do_errand(self, errand: Errand) -> Iterator[tuple[str, Any]]:
        """Yield (ITEM, value) for each item of the errand.

        If the errand raised an exception, it is yielded last as (RAISED, exception).
        """
        _check_release(errand.release)
        import ray

        with ExitStack() as stack:
            folders = {
                name: _open_folder(stack, find_model_cache(), parcel, ray.get)
                for name, parcel in errand.folders.items()
            }
            try:
                for item in errand.function(*errand.arguments, **folders):
                    yield ITEM, item
            except Exception as error:  # as an item, because Ray would wrap exceptions
                yield RAISED, error


def _check_release(queue_digest: str) -> None:
    if queue_digest != compute_release_digest():
        raise ReleaseMismatch("Install on this node what the queue has.")


def find_model_cache() -> Path:
    """Return the folder of this machine's model cache."""
    return Path(os.environ.get("MODEL_CACHE") or Path.home() / ".cache" / "dynabench-models")


def _open_folder(
    stack: ExitStack, cache: Path, parcel: Parcel | None, get_piece: PieceGetter
) -> Path | None:
    """Return a model's files in this machine's cache; None without a parcel.

    They are not removed until the stack is closed. Raises ValueError if other files arrived.
    """
    if parcel is None:
        return None

    def fill(folder: Path) -> None:
        unpack_folder(_PieceReader(parcel, get_piece), folder, skip_beat)  # type: ignore[arg-type]
        if digest_folder(folder, skip_beat) != parcel.digest:
            raise ValueError("What came are not the model's files.")

    max_bytes = int(os.environ.get("MODEL_CACHE_GIB") or 50) * GIB
    return stack.enter_context(open_cached_folder(cache, parcel.digest, fill, max_bytes, skip_beat))


def _load_image(image: Parcel, folder: Path, get_piece: PieceGetter) -> None:
    """Load an image into this machine's container engine.

    Raises ValueError if the digest of the loaded image differs.
    """
    from evaluation.isolation.sandbox import images

    # Images take gigabytes, and most shards of a run find theirs here.
    if images.has_image(image.digest):
        return
    archive = folder / "image.tar"
    with archive.open("wb") as file:
        for piece in image.pieces:
            file.write(get_piece(piece))
    if images.load_image(archive) != image.digest:
        raise ValueError("What came is not the model's image.")
    archive.unlink()  # the engine has these gigabytes now


class _PieceReader:
    """A file-like reader over the pieces of a parcel."""

    def __init__(self, parcel: Parcel, get: PieceGetter) -> None:
        self._references, self._get, self._buffer = list(parcel.pieces), get, memoryview(b"")

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        if not self._buffer and self._references:
            self._buffer = memoryview(self._get(self._references.pop(0)))
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return bytes(data)


@contextmanager
def _open_work_folder(parent_folder: Path, key: str) -> Iterator[Path]:
    """Provide a folder for this shard, after removing folders and containers of dead processes.

    Each process holds a kernel lock, which ends with it and so shows whether it is alive. Nothing
    else removes leftovers on a node.
    """
    parent_folder.mkdir(parents=True, exist_ok=True)
    for lock in parent_folder.glob("*.lock"):
        with suppress(FileNotFoundError, BlockingIOError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_container(lock.stem)
            shutil.rmtree(parent_folder / lock.stem, ignore_errors=True)
            lock.unlink()
    folder, lock = parent_folder / key, parent_folder / f"{key}.lock"
    # An earlier attempt at the shard may still be ending on this node.
    with _hold_lock(lock):
        if folder.exists():  # its last holder was killed
            _remove_container(key)
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            # While the lock is held, because the file may later belong to the next holder.
            lock.unlink(missing_ok=True)


@contextmanager
def _hold_lock(lock: Path) -> Iterator[None]:
    """Hold the lock of the file that currently has this path, for the block.

    A former holder may have deleted the file before this process got its lock. Then the new file at
    the path is opened and locked.
    """
    while True:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_same_file(file.fileno(), lock):
                yield
                return


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove_container(key: str) -> None:
    # Nodes without the package for Docker run processes, so there are no containers.
    with suppress(ImportError):
        from evaluation.isolation.sandbox.containers import NAME_PREFIX, remove_container
        from evaluation.isolation.sandbox.engine import EngineError

        with suppress(*EngineError):
            remove_container(NAME_PREFIX + key)
