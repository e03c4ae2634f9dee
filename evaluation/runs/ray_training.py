"""Do training runs in a process on a cluster node: the queue's side, then the node's. No Django."""

import queue
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from evaluation.contract import BeatCallback
from evaluation.heartbeat import CHUNK_BYTES, skip_beat
from evaluation.runs.model_cache import pack_folder, unpack_folder
from evaluation.runs.ray_runner import NodeClient
from evaluation.seeds import Row
from evaluation.training import fine_tune, picture_learning
from evaluation.training.fine_tune import Progress, Reading, TrainingOptions, TrainingReport
from evaluation.training.folders import make_atomic_folder
from serving.codecs import Answer

PROGRESS_SECONDS = 1.0


class NodeTrainer:
    """A `Trainer` on a node. Every method also raises the exceptions of `NodeClient.do_errand`."""

    def __init__(self, node: NodeClient, beat: BeatCallback) -> None:
        self._node, self._beat = node, beat

    def train(
        self,
        rows: Sequence[Row],
        *,
        kind: str,
        base: str | Path,
        output_dir: Path,
        options: TrainingOptions,
        progress: Progress,
        dev: Sequence[Row] = (),
    ) -> TrainingReport:
        """Train a model on the node with `fine_tune.train`, which explains the arguments."""
        arguments = rows, dev, kind, options
        report = self._build_folder(output_dir, progress, run_training, *arguments, base=Path(base))
        return cast("TrainingReport", report)

    def compute_answers(self, folder: Path, rows: Sequence[Row], reading: Reading) -> list[Answer]:
        """Return a model's answers, computed on the node with `fine_tune.answer_texts`."""
        items = list(self._node.do_errand(run_answering, rows, reading, folder=folder))
        return cast("list[Answer]", items[-1])

    def learn_pictures(
        self,
        rows: Sequence[tuple[picture_learning.StoredFile, str]],
        labels: Sequence[str],
        folder: Path,
    ) -> None:
        """Train a picture model on the node with `picture_learning.learn_pictures`."""
        with TemporaryDirectory(dir=folder.parent) as temporary_folder:
            for index, (stored_file, _) in enumerate(rows):
                with (
                    stored_file.open("rb") as file,
                    Path(temporary_folder, str(index)).open("wb") as copy,
                ):
                    shutil.copyfileobj(file, copy)
                self._beat()
            picture_labels = [label for _, label in rows]
            self._build_folder(
                folder,
                _ignore_progress,
                run_picture_training,
                labels,
                picture_labels,
                pictures=Path(temporary_folder),
            )

    def _build_folder(
        self,
        target: Path,
        progress: Progress,
        function: Callable[..., Iterator[Any]],
        *arguments: Any,
        **folders: Path,
    ) -> Any:
        """Call a function on the node, write the folder that it makes, and return its result.

        target: the place of the folder on this machine. The folder is written completely or not
        at all.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=target.parent) as temporary_folder:
            archive, result = Path(temporary_folder, "model.tar"), None
            for word, value in self._node.do_errand(
                function, *arguments, target=archive, **folders
            ):
                if word == PROGRESS:
                    progress(*value)
                else:
                    result = value
            with archive.open("rb") as file, make_atomic_folder(target) as folder:
                unpack_folder(file, folder, self._beat)
        return result


def _ignore_progress(done: int, steps: int, message: str) -> None:
    pass


# On the node.

PROGRESS, RETURNED = "progress", "returned"


def run_training(
    rows: Sequence[Row], dev: Sequence[Row], kind: str, options: TrainingOptions, *, base: Path
) -> Iterator[Any]:
    """Run `fine_tune.train`, and yield the messages of `_run_work`."""

    def work(folder: Path, progress: Progress) -> TrainingReport:
        training_options = {"kind": kind, "base": base, "options": options, "dev": dev}
        return fine_tune.train(rows, output_dir=folder, progress=progress, **training_options)  # type: ignore[arg-type]

    yield from _run_work(work)


def run_answering(rows: Sequence[Row], reading: Reading, *, folder: Path) -> Iterator[list[Answer]]:
    """Yield one list with all answers of a model."""
    yield fine_tune.answer_texts(folder, rows, reading)


def run_picture_training(
    labels: Sequence[str], picture_labels: Sequence[str], *, pictures: Path
) -> Iterator[Any]:
    """Run `picture_learning.learn_pictures`, and yield the messages of `_run_work`.

    pictures: a folder with a file for each of `picture_labels`, named by its index.
    """
    rows = [(pictures / str(index), label) for index, label in enumerate(picture_labels)]
    yield from _run_work(
        lambda folder, progress: picture_learning.learn_pictures(rows, labels, folder)
    )


def _run_work(work: Callable[[Path, Progress], Any]) -> Iterator[Any]:
    """Yield PROGRESS every second, then the folder in pieces, then RETURNED with the result.

    The pieces form the tar that `pack_folder` writes.
    """
    progress_queue: queue.SimpleQueue[tuple[int, int, str]] = queue.SimpleQueue()
    with TemporaryDirectory() as temporary_folder, ThreadPoolExecutor(1) as pool:
        folder, archive = Path(temporary_folder, "model"), Path(temporary_folder, "model.tar")
        future = pool.submit(work, folder, lambda *progress: progress_queue.put(progress))
        while not wait([future], PROGRESS_SECONDS).done:
            for progress in _take_newest_message(progress_queue):
                yield PROGRESS, progress
        result = future.result()
        # In pieces, which `NodeClient` writes to one file, because a model is too large.
        with archive.open("wb") as file:
            pack_folder(folder, file, skip_beat)
        with archive.open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                yield piece
        yield RETURNED, result


def _take_newest_message(
    progress_queue: "queue.SimpleQueue[tuple[int, int, str]]",
) -> list[tuple[int, int, str]]:
    """Return a list with only the queue's last message, or an empty list. Empties the queue."""
    messages = [progress_queue.get() for _ in range(progress_queue.qsize())]
    return messages[-1:]
