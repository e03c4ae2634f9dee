"""Train models in this process, or on one of a cluster's nodes (`evaluation.runs.ray_training`).

It loads a model library when it is called.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evaluation.contract import Beat
from evaluation.heartbeat import call_with_beat
from evaluation.seeds import Row

if TYPE_CHECKING:
    from evaluation.training.fine_tune import Reading, TrainingOptions, TrainingReport
    from evaluation.training.looking import StoredFile
    from serving.codecs import Answer


class Trainer(Protocol):
    """A protocol for training models, with the methods of the functions of the same names."""

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

    def answers(self, folder: Path, rows: Sequence[Row], reading: "Reading") -> "list[Answer]": ...

    def learn_pictures(
        self, rows: "Sequence[tuple[StoredFile, str]]", labels: Sequence[str], folder: Path
    ) -> None: ...


class LocalTrainer:
    """A trainer in this process, in a thread without a database.

    beat: called regularly while it works.
    """

    def __init__(self, beat: Beat) -> None:
        self._beat = beat

    def train(self, rows: Sequence[Row], **how: Any) -> "TrainingReport":
        """Train a model as `fine_tune.train` does."""
        from evaluation.training.fine_tune import train

        return call_with_beat(lambda: train(rows, **how), self._beat)

    def answers(self, folder: Path, rows: Sequence[Row], reading: "Reading") -> "list[Answer]":
        """Return a model's answers as `fine_tune.answer_texts` does."""
        from evaluation.training.fine_tune import answer_texts

        return call_with_beat(lambda: answer_texts(folder, rows, reading), self._beat)

    def learn_pictures(
        self, rows: "Sequence[tuple[StoredFile, str]]", labels: Sequence[str], folder: Path
    ) -> None:
        """Train a picture model as `looking.learn_pictures` does."""
        from evaluation.training.looking import learn_pictures

        call_with_beat(lambda: learn_pictures(rows, labels, folder), self._beat)
