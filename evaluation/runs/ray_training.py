"""Trainings in a process of a node: the queue's side, then the node's. No Django."""

import queue
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from evaluation.contract import Beat
from evaluation.heartbeat import CHUNK_BYTES, no_beat
from evaluation.runs.model_cache import pack_folder, unpack_folder
from evaluation.runs.ray_runner import NodeClient
from evaluation.seeds import Row
from evaluation.training import fine_tune, looking
from evaluation.training.fine_tune import Progress, Reading, TrainingOptions, TrainingReport
from evaluation.training.folders import make_atomic_folder
from serving.codecs import Answer

TELL_SECONDS = 1.0


class NodeTrainer:
    """A `Trainer` on a node. Every method also raises the exceptions of `NodeClient.do`."""

    def __init__(self, node: NodeClient, beat: Beat) -> None:
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
        """Train a model on the node, as `fine_tune.train` does."""
        arguments = rows, dev, kind, options
        report = self._made(output_dir, progress, run_training, *arguments, base=Path(base))
        return cast("TrainingReport", report)

    def answers(self, folder: Path, rows: Sequence[Row], reading: Reading) -> list[Answer]:
        """Return a model's answers computed on the node, as `fine_tune.answer_texts` does."""
        items = list(self._node.do(run_answers, rows, reading, folder=folder))
        return cast("list[Answer]", items[-1])

    def learn_pictures(
        self, rows: Sequence[tuple[looking.StoredFile, str]], labels: Sequence[str], folder: Path
    ) -> None:
        """Train a picture model on the node, as `looking.learn_pictures` does."""
        with TemporaryDirectory(dir=folder.parent) as place:
            for number, (stored, _) in enumerate(rows):
                with stored.open("rb") as file, Path(place, str(number)).open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                self._beat()
            label_of_each = [label for _, label in rows]
            self._made(
                folder,
                _ignore_progress,
                run_picture_training,
                labels,
                label_of_each,
                pictures=Path(place),
            )

    def _made(
        self, target: Path, progress: Progress, do: Callable[..., Iterator[Any]], *arguments: Any,
        **folders: Path,
    ) -> Any:  # fmt: skip
        """Do the work on the node, write its folder to `target`, and return its result.

        The folder is written completely or not at all.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=target.parent) as place:
            archive, result = Path(place, "model.tar"), None
            for word, value in self._node.do(do, *arguments, target=archive, **folders):
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
        how = {"kind": kind, "base": base, "options": options, "dev": dev}
        return fine_tune.train(rows, output_dir=folder, progress=progress, **how)  # type: ignore[arg-type]

    yield from _run_work(work)


def run_answers(rows: Sequence[Row], reading: Reading, *, folder: Path) -> Iterator[list[Answer]]:
    """Yield one list with all answers of a model."""
    yield fine_tune.answer_texts(folder, rows, reading)


def run_picture_training(
    labels: Sequence[str], label_of_each: Sequence[str], *, pictures: Path
) -> Iterator[Any]:
    """Run `looking.learn_pictures`, and yield the messages of `_run_work`.

    pictures: a folder with a file for each of `label_of_each`, named by its index.
    """
    rows = [(pictures / str(number), label) for number, label in enumerate(label_of_each)]
    yield from _run_work(lambda folder, progress: looking.learn_pictures(rows, labels, folder))


def _run_work(work: Callable[[Path, Progress], Any]) -> Iterator[Any]:
    """Yield PROGRESS every second, then the folder in pieces, then RETURNED with the result.

    The pieces form the tar that `pack_folder` writes.
    """
    news: queue.SimpleQueue[tuple[int, int, str]] = queue.SimpleQueue()
    with TemporaryDirectory() as place, ThreadPoolExecutor(1) as pool:
        folder, archive = Path(place, "model"), Path(place, "model.tar")
        future = pool.submit(work, folder, lambda *progress: news.put(progress))
        while not wait([future], TELL_SECONDS).done:
            for progress in _take_newest(news):
                yield PROGRESS, progress
        result = future.result()
        # In pieces, which `NodeClient` writes to one file: a model is too large for one message.
        with archive.open("wb") as file:
            pack_folder(folder, file, no_beat)
        with archive.open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                yield piece
        yield RETURNED, result


def _take_newest(news: "queue.SimpleQueue[tuple[int, int, str]]") -> list[tuple[int, int, str]]:
    """Return a list with the queue's last message, or an empty list; drop the earlier messages."""
    messages = [news.get() for _ in range(news.qsize())]
    return messages[-1:]
