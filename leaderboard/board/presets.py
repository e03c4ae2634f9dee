"""Weights that readers often want, one click away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.query import BoardRequest
from leaderboard.scoring.weights import Weighting

PRESETS: Mapping[str, tuple[str, ...]] = {
    gettext_noop("%(metric)s only"): (),
    gettext_noop("Fast"): ("throughput",),
    gettext_noop("Robust"): ("robustness",),
    gettext_noop("Fair"): ("fairness",),
}
"""By title the metrics that count as much as the main one; all others count nothing. A title may
name the main metric."""
FULL = 4.0


@dataclass(frozen=True)
class Preset:
    """A link to the board with other weights of metrics; sets keep theirs."""

    title: str
    link: str
    is_chosen: bool


def presets(asked: BoardRequest, main: str) -> Iterator[Preset]:
    """Yield the weights that the board opens with, then presets whose metrics the task has."""
    yield _preset(asked, _("Owner's"), asked.start)
    for title, others in PRESETS.items():
        if set(others) <= asked.start.metrics.keys():
            metrics = {
                name: FULL if name in (main, *others) else 0.0 for name in asked.start.metrics
            }
            words = _(title) % {"metric": in_words(main)}
            yield _preset(asked, words, Weighting(metrics, asked.weighting.sets))


def _preset(asked: BoardRequest, title: str, weighting: Weighting) -> Preset:
    link = replace(asked, weighting=weighting).link()
    return Preset(title, link, weighting == asked.weighting)
