"""Read the signals of texts, and estimate the share that machines wrote. No person is named.

Numbers leave this module only as sums over at least MIN_SHOWN_AUTHORS people.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from django.db.models import QuerySet

from annotation.models import Example, SignalStudy, Suggestion
from annotation.rules.writing_conditions import get_condition, name_stratum, read_signals

if TYPE_CHECKING:
    # Loaded when it is needed, because it needs numpy.
    from annotation.rules.machine_share import AuthorCounts, Counts, LabelledCounts, SignalRate

MIN_SHOWN_AUTHORS = 10
"""Raw shares of signals are shown only for this many people, so that they point at none of them."""


class ReadText(NamedTuple):
    """A text with its signals.

    told: whether the author was told to use a model; None outside labelled studies.
    """

    author: int
    condition: str
    stratum: str
    signals: Mapping[str, bool]
    told: bool | None

    @property
    def score(self) -> float:
        """Return the share of the text's signals that fire; 0 without signals."""
        return sum(self.signals.values()) / max(1, len(self.signals))


class SignalShare(TypedDict):
    """How often a signal fired in the texts under one condition."""

    condition: str
    signal: str
    texts: int
    fired: int
    share: float


class MachineShareReport(TypedDict):
    """The estimated share of machine-written texts, and what it was estimated from.

    left_out: texts that are not counted: edits of earlier texts, texts written with the task's own
    suggestions, by programs, from other platforms, or in a labelled study. study: the name of the
    labelled study, or None. The other keys are those of `rules.machine_share.MachineShare`.
    """

    share: float | None
    low: float | None
    high: float | None
    reason: str
    texts: int
    authors: int
    unknown_texts: int
    left_out: int
    study: str | None
    measured_at: datetime | None
    signals: list[SignalShare]


def read_texts(examples: QuerySet[Example]) -> Iterator[ReadText]:
    """Yield the texts that people wrote on this site from nothing, with their signals. One query.

    Leaves out edits, because the typing of an edit says nothing of the text that it began with, and
    texts in which a suggestion of the task was used.
    """
    rows = examples.filter(
        by_program=False, annotator__isnull=False, uid=None, parent=None, retracted_at=None
    )
    values = rows.order_by("pk").values_list("annotator", "signs", "typing", "support")
    for author, signs, typing, support in values.iterator():
        if (support or {}).get("suggestion") in Suggestion.USED_ACTIONS:
            continue
        signals = read_signals(signs, typing)
        told = signs.get("told") if signs else None
        yield ReadText(
            author, get_condition(signs), name_stratum(signs, signals), signals, told
        )  # fmt: skip


def build_machine_share_report(examples: QuerySet[Example]) -> MachineShareReport:
    """Estimate the share of machine-written texts with the site's newest study. Three queries."""
    from annotation.rules import machine_share

    texts = [text for text in read_texts(examples) if text.told is None]
    study = SignalStudy.objects.first()
    authors = machine_share.count_by_author(
        machine_share.SignalledText(text.author, text.stratum, text.score) for text in texts
    )
    found = machine_share.estimate_machine_share(
        authors, unpack_counts(study.counts) if study else []
    )
    return {
        "share": found.share,
        "low": found.low,
        "high": found.high,
        "reason": found.reason,
        "texts": found.texts,
        "authors": found.authors,
        "unknown_texts": found.unknown_texts,
        "left_out": examples.filter(retracted_at=None).count() - len(texts),
        "study": study.name if study else None,
        "measured_at": study.measured_at if study else None,
        "signals": _list_signal_shares(texts),
    }


def _list_signal_shares(texts: Sequence[ReadText]) -> list[SignalShare]:
    """Return how often each signal fired, by condition; only where enough people wrote."""
    shares: list[SignalShare] = []
    for (condition, signal), counts in _count_signals(texts).items():
        if len(counts) < MIN_SHOWN_AUTHORS:
            continue
        text_count = sum(one.texts for one in counts)
        fired_count = round(sum(one.score for one in counts))
        shares.append(
            {
                "condition": condition,
                "signal": signal,
                "texts": text_count,
                "fired": fired_count,
                "share": fired_count / text_count,
            }
        )
    return shares


def _count_signals(texts: Iterable[ReadText]) -> dict[tuple[str, str], "list[Counts]"]:
    """Return each author's counts of each signal under each condition, sorted by both."""
    from annotation.rules.machine_share import Counts

    counts_by_key: dict[tuple[str, str], dict[int, Counts]] = {}
    for text in texts:
        for signal, has_fired in text.signals.items():
            counts_by_author = counts_by_key.setdefault((text.condition, signal), {})
            text_count, fired_count = counts_by_author.get(text.author, Counts(0, 0.0))
            counts_by_author[text.author] = Counts(text_count + 1, fired_count + has_fired)
    return {key: list(counts_by_key[key].values()) for key in sorted(counts_by_key)}


class LabelledStudyResult(NamedTuple):
    """What a labelled study measured.

    counts: to be stored, one entry per author, in random order. signal_rates: of each signal under
    each condition, with intervals. strata: those whose signals tell machines from people.
    """

    counts: list[dict[str, Any]]
    signal_rates: list[dict[str, Any]]
    strata: list[str]
    texts: int
    authors: int


def measure_labelled_texts(examples: QuerySet[Example]) -> LabelledStudyResult:
    """Measure how often signals fire in texts whose authors were told how to write. One query."""
    from annotation.rules import machine_share

    texts = [text for text in read_texts(examples) if text.told is not None]
    texts_by_author: dict[int, list[ReadText]] = {}
    for text in texts:
        texts_by_author.setdefault(text.author, []).append(text)
    study = [
        machine_share.LabelledCounts(
            machine=_count_strata(own_texts, told=True),
            person=_count_strata(own_texts, told=False),
        )
        for own_texts in texts_by_author.values()
    ]
    # So that nobody is found by the order in which they came.
    random.SystemRandom().shuffle(study)
    return LabelledStudyResult(
        counts=[{"machine": one.machine, "person": one.person} for one in study],
        signal_rates=_measure_signal_rates(texts),
        strata=machine_share.find_known_strata(study),
        texts=len(texts),
        authors=len(study),
    )


def _count_strata(texts: Iterable[ReadText], *, told: bool) -> "AuthorCounts":
    from annotation.rules.machine_share import SignalledText, count_by_author

    signalled_texts = (
        SignalledText(text.author, text.stratum, text.score) for text in texts if text.told is told
    )
    return next(iter(count_by_author(signalled_texts)), {})


def _measure_signal_rates(texts: Sequence[ReadText]) -> list[dict[str, Any]]:
    """Return each signal's sensitivity, and its rate of false alarms, under each condition."""
    from annotation.rules.machine_share import measure_signal_rate

    rates_by_key: dict[tuple[str, str], dict[str, SignalRate]] = {}
    for name, told in (("machine", True), ("person", False)):
        told_texts = [text for text in texts if text.told is told]
        for key, counts in _count_signals(told_texts).items():
            rates_by_key.setdefault(key, {})[name] = measure_signal_rate(counts)
    rows = []
    for (condition, signal), rates in sorted(rates_by_key.items()):
        row: dict[str, Any] = {"condition": condition, "signal": signal}
        for name, rate in rates.items():
            row[name] = rate._asdict()
        rows.append(row)
    return rows


def unpack_counts(counts: Iterable[Mapping[str, Any]]) -> "list[LabelledCounts]":
    """Return the stored counts of a study as the rules take them."""
    from annotation.rules.machine_share import Counts, LabelledCounts

    def unpack(strata: Mapping[str, Sequence[float]]) -> dict[str, Counts]:
        return {name: Counts(int(texts), float(score)) for name, (texts, score) in strata.items()}

    return [LabelledCounts(unpack(one["machine"]), unpack(one["person"])) for one in counts]


def describe_machine_share(report: MachineShareReport) -> str:
    """Return the estimate as one English sentence, for files that leave the site.

    Empty if no text was counted, because people wrote none of them here.
    """
    if not report["texts"]:
        return ""
    if report["share"] is not None:
        return (
            "Estimated share of machine-written texts: "
            f"{report['share']:.1%} (95% interval {report['low']:.1%} to {report['high']:.1%}), "
            f"from {report['texts']} texts by {report['authors']} people and error rates that a "
            "labelled study measured; it says nothing of a single text or person."
        )
    reasons = {
        "few": f"{report['texts']} texts by {report['authors']} people are too few for an estimate",
        "no_rates": "no labelled study has measured the error rates of the signals",
        "unfit": "the measured error rates do not fit these texts",
    }
    return f"Share of machine-written texts: not known, because {reasons[report['reason']]}."
