"""Weights that readers often want, one click away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.query import BoardRequest
from leaderboard.ranking.weights import Weighting

PRESETS: Mapping[str, tuple[str, ...]] = {
    # Translators: button: only this measure counts
    gettext_noop("%(metric)s only"): (),
    # Translators: adjective: a model that answers fast
    gettext_noop("Fast"): ("throughput",),
    gettext_noop("Robust"): ("robustness",),
    # Translators: adjective: a model that treats groups of people alike
    gettext_noop("Fair"): ("fairness",),
}
"""By title, the metrics that count as much as the main one; others have the weight 0.

A title may contain the name of the main metric.
"""
FULL_WEIGHT = 4.0
"""The weight of each metric that counts."""


@dataclass(frozen=True)
class Preset:
    """A link to the board with other weights of metrics; the weights of sets are kept."""

    title: str
    link: str
    is_chosen: bool


def iter_presets(board_request: BoardRequest, main_metric: str) -> Iterator[Preset]:
    """Yield the opening weights, then the presets whose metrics the task has."""
    yield _build_preset(board_request, _("Owner’s weights"), board_request.start)
    for title, other_metrics in PRESETS.items():
        if not set(other_metrics) <= board_request.start.metrics.keys():
            continue  # the task lacks one of them
        metrics = {}
        for name in board_request.start.metrics:
            is_weighted = name == main_metric or name in other_metrics
            # All are listed, because metrics missing from a query keep the owner's weight.
            metrics[name] = FULL_WEIGHT if is_weighted else 0.0
        words = _(title) % {"metric": in_words(main_metric)}
        yield _build_preset(board_request, words, Weighting(metrics, board_request.weighting.sets))


def _build_preset(board_request: BoardRequest, title: str, weighting: Weighting) -> Preset:
    link = replace(board_request, weighting=weighting).link()
    return Preset(title, link, weighting == board_request.weighting)
