"""Recompute robustness and fairness from raw answers to perturbed examples. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import orjson

from evaluation.contract import Answer, SetRow
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Mean
from evaluation.scoring.robustness import Cluster, ClusterCounter, PerturbedExample, make_clusters
from evaluation.scoring.worst import COLUMN_BY_SUITE
from evaluation.task_shape import get_labels
from tasks.config.schema import TaskConfig

MAX_KEPT_EXAMPLES = 100_000
"""The maximum number of examples whose clusters are kept, about a kilobyte each."""
MIN_DRAWS_OF_VALUES = 2
"""Draws that give values without usable intervals: a deviation needs two."""
Clusters = tuple[tuple[str, Cluster], ...]


class PerturbedScorer:
    """Scores the answers of many models to the perturbed examples of one set.

    Models that answer alike repeat each other's lines, so the clusters of a line are kept.
    """

    def __init__(self, config: TaskConfig, rows: Sequence[SetRow], lines: Iterable[bytes]) -> None:
        """Prepare to read the lines, which `recompute.recompute_scores` documents."""
        self._rows, self._lines = rows, iter(lines)
        self._is_text = get_labels(config) is None
        self._metric: Metric | None = None
        # Columns whose metric needs what this machine lacks are left out.
        with suppress(MetricUnavailable):
            self._metric = make_metric(
                config.metrics.main, get_labels(config), None, config.language
            )
        # How the line of each example begins: comparing bytes is faster than parsing lines.
        self._prefixes = [b'{"id":%s,' % orjson.dumps(row.uid) for row in rows]
        self._header = self._read_header()
        self._known_clusters: dict[tuple[int, bytes, bytes], Clusters] = {}

    def score(
        self, model: str, base_lines: Sequence[bytes], *, with_intervals: bool
    ) -> dict[str, tuple[float, float | None, float | None]]:
        """Return the scores of one model by column, as in `recompute.ModelScores`.

        base_lines: its answers to the unperturbed examples, in the order of the rows. Raises
        ValueError if the answers are not to examples of the set.
        """
        scores = {}
        while self._header is not None and self._header["model"] == model:
            header = self._header
            lines = list(islice(self._lines, header["examples"]))
            self._header = self._read_header()
            if self._metric is None:
                continue
            draws = None if with_intervals else MIN_DRAWS_OF_VALUES
            counter = ClusterCounter(self._metric, header["seed"], draws)
            for clusters in self._iterate_clusters(self._metric, base_lines, lines):
                counter.add(clusters)
            shows_ends = with_intervals or isinstance(self._metric, Mean)
            for number in counter.compute_numbers():
                column = COLUMN_BY_SUITE.get((header["suite"], number.metric))
                # Only numbers over all kinds are columns of a board.
                if column and not number.kind and number.value is not None:
                    ends = (number.low, number.high) if shows_ends else (None, None)
                    scores[column] = (number.value, *ends)
        return scores

    def skip(self, model: str) -> None:
        """Pass over the answers of a model that are not read yet."""
        while self._header is not None and self._header["model"] == model:
            for _line in islice(self._lines, self._header["examples"]):
                pass
            self._header = self._read_header()

    def _read_header(self) -> dict[str, Any] | None:
        """Return the header of the next suite; None after the last one."""
        line = next(self._lines, None)
        return None if line is None else orjson.loads(line)

    def _iterate_clusters(
        self, metric: Metric, base_lines: Sequence[bytes], lines: Sequence[bytes]
    ) -> Iterator[Clusters]:
        """Yield the clusters of each line. Raises ValueError for an example out of order."""
        index = -1
        for line in lines:
            # Of a large set only every second or third example is perturbed.
            index = self._find_index(index + 1, line)
            key = index, base_lines[index], line
            clusters = self._known_clusters.get(key)
            if clusters is None:
                clusters = self._make_clusters(metric, index, base_lines[index], line)
                if len(self._known_clusters) < MAX_KEPT_EXAMPLES:
                    self._known_clusters[key] = clusters
            yield clusters

    def _find_index(self, start: int, line: bytes) -> int:
        """Return the index of the row that a line is about, from `start` on. Raises ValueError."""
        for index in range(start, len(self._rows)):
            if line.startswith(self._prefixes[index]):
                return index
        raise ValueError(line)

    def _make_clusters(self, metric: Metric, index: int, base_line: bytes, line: bytes) -> Clusters:
        row, variants = self._rows[index], []
        for kind, value in orjson.loads(line)["answers"]:
            # Perturbing changes neither the right answers nor the slices.
            variant_row = SetRow(row.uid, {}, row.gold, row.slices)
            variants.append((kind, variant_row, _make_answer(value)))
        base_answer = _make_answer(orjson.loads(base_line)["answer"])
        example = PerturbedExample(row, base_answer, variants)
        return tuple(make_clusters(example, metric, is_text=self._is_text))


def _make_answer(value: Any) -> Answer | None:
    return None if value is None else Answer(value)
