"""Train models in this process, or on a cluster node (`evaluation.runs.ray_training`).

Loads a model library only when it is called.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evaluation.contract import BeatCallback
from evaluation.heartbeat import call_with_beat
from evaluation.seeds import Row

if TYPE_CHECKING:
    from evaluation.training.fine_tune import Reading, TrainingOptions, TrainingReport
    from evaluation.training.picture_learning import StoredFile
    from serving.codecs import Answer


class Trainer(Protocol):
    """The protocol of trainers, which train models and compute their answers."""

    def train(
        self,
        rows: Sequence[Row],
        *,
        kind: str,
        base: str | Path,
        output_dir: Path,
        options: "TrainingOptions",
        progress: Callable[[int, int, str], None],
        dev: Sequence[Row] = (),
    ) -> "TrainingReport": ...

    def compute_answers(
        self, folder: Path, rows: Sequence[Row], reading: "Reading"
    ) -> "list[Answer]": ...

    def learn_pictures(
        self, rows: "Sequence[tuple[StoredFile, str]]", labels: Sequence[str], folder: Path
    ) -> None: ...


class LocalTrainer:
    """A trainer in this process, in a thread without a database.

    beat: called regularly while it works.
    """

    def __init__(self, beat: BeatCallback) -> None:
        self._beat = beat

    def train(self, rows: Sequence[Row], **arguments: Any) -> "TrainingReport":
        """Train a model with `fine_tune.train`."""
        from evaluation.training.fine_tune import train

        return call_with_beat(lambda: train(rows, **arguments), self._beat)

    def compute_answers(
        self, folder: Path, rows: Sequence[Row], reading: "Reading"
    ) -> "list[Answer]":
        """Return a model's answers from `fine_tune.answer_texts`."""
        from evaluation.training.fine_tune import answer_texts

        return call_with_beat(lambda: answer_texts(folder, rows, reading), self._beat)

    def learn_pictures(
        self, rows: "Sequence[tuple[StoredFile, str]]", labels: Sequence[str], folder: Path
    ) -> None:
        """Train a picture model with `picture_learning.learn_pictures`."""
        from evaluation.training.picture_learning import learn_pictures

        call_with_beat(lambda: learn_pictures(rows, labels, folder), self._beat)
