"""Choose anchors from stored answers, and expect scores from them. Loads numpy.

docs/statistics.md, "One ruler", has the method.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Avg
from numpy.typing import NDArray

from evaluation.models import (
    EvaluationSetVersion,
    ExpectedScore,
    Ruler,
    RulerLink,
    RulerStanding,
    Submission,
)
from evaluation.runs.item_services import find_answered_runs
from evaluation.runs.rulers.selectors import (
    find_complete_models,
    select_anchor_versions,
    select_link_versions,
)
from evaluation.runs.stored_answers import AnswerReader
from evaluation.runs.whole_models import identify_whole_models
from evaluation.scoring.metrics import MetricUnavailable
from evaluation.scoring.ruler.anchors import choose_anchors
from evaluation.scoring.ruler.linking import link_shares
from evaluation.scoring.ruler.matrices import ItemGroups
from evaluation.scoring.ruler.packing import pack_ruler, unpack_ruler
from evaluation.scoring.ruler.prediction import (
    MIN_MODELS,
    TooFewModels,
    split_whole_models,
)

logger = logging.getLogger(__name__)
MAX_KNOWN = 300
"""The newest models that teach: fitting takes the cube of their number, here some ten seconds."""
REFIT_SHARE = 1.1
"""A set is linked again once a tenth more models have run it."""
BATCH_ROWS = 1000
Answers = NDArray[np.bool_]
Row = tuple[EvaluationSetVersion, str]
"""A version of a set, and the uid of one of its items."""


class AnchorsRefused(Exception):
    """Raised if no anchors can be chosen; the message says why, in English."""


class SourceAnswers:
    """The items of several sets side by side, and which of them models have right."""

    def __init__(self, versions: Sequence[EvaluationSetVersion]) -> None:
        self._versions = versions
        self._readers = [AnswerReader(version) for version in versions]
        self.rows: list[Row] = []
        for version, reader in zip(versions, self._readers, strict=True):
            self.rows += [(version, row.uid) for row in reader.rows]
        sizes = [len(reader.rows) for reader in self._readers]
        names = tuple(version.evaluation_set.name for version in versions)
        self.groups = ItemGroups(names, np.repeat(np.arange(len(sizes)), sizes))

    def read(self, model_ids: Sequence[UUID], beat: Callable[[], None]) -> dict[UUID, Answers]:
        """Return each model's row of right answers; models whose files are gone are left out."""
        parts: dict[UUID, list[Answers]] = {}
        for version, reader in zip(self._versions, self._readers, strict=True):
            runs = find_answered_runs(version).filter(submission__in=model_ids)
            for run in runs.iterator(chunk_size=100):
                beat()
                answers = reader.read_right_answers(run)
                if answers is not None:
                    parts.setdefault(run.submission_id, []).append(answers)
        # A model without one of the sets would have a shorter row than the others.
        whole = len(self._versions)
        return {pk: np.concatenate(found) for pk, found in parts.items() if len(found) == whole}


def choose_rows(
    ruler: Ruler, versions: Sequence[EvaluationSetVersion], beat: Callable[[], None]
) -> tuple[list[Row], list[UUID]]:
    """Return the anchors that a new ruler gets, and the models whose answers decided.

    Raises AnchorsRefused if there are too few models or items, or if the answers can't be read.
    """
    try:
        sources = SourceAnswers(versions)
    except MetricUnavailable as error:
        raise AnchorsRefused("The task's main metric can't be computed on this site.") from error
    answers = sources.read(_choose_newest(find_complete_models(versions)), beat)
    is_right = np.array(list(answers.values()))
    try:
        split_whole_models(identify_whole_models(list(answers)))
        chosen = choose_anchors(
            is_right,
            sources.groups,
            ruler.anchor_count,
            np.random.default_rng(ruler.seed),
            np.arange(len(sources.rows)),
        )
    # Also TooFewModels: both messages say how many there are and how many are needed.
    except ValueError as error:
        raise AnchorsRefused(str(error)) from error
    return [sources.rows[place] for place in chosen], list(answers)


def refresh_ruler(ruler: Ruler, beat: Callable[[], None] = lambda: None) -> bool:
    """Add new models to a ruler, link its sets, and store expected scores; return if any changed.

    A new model is added without a fit. Locks the ruler while rows are stored; nothing is stored on
    a ruler that was retired meanwhile.
    """
    versions = list(select_anchor_versions(ruler))
    # Four cheap queries first: most minutes bring nothing new.
    standing_ids = set(ruler.standings.values_list("submission", flat=True))
    complete_ids = find_complete_models(versions)
    new_ids = [pk for pk in complete_ids if pk not in standing_ids]
    due = _list_due_links(ruler, standing_ids.union(complete_ids))
    outdated = ruler.links.exclude(version__in=select_link_versions(ruler.task))
    if not (new_ids or due or outdated.exists()):
        return False
    try:
        return _Refreshing(ruler, versions, beat).run(new_ids, due)
    except (MetricUnavailable, OSError, EOFError, ValueError):
        logger.exception("%s cannot be refreshed", ruler)
        return False


def _list_due_links(
    ruler: Ruler, model_ids: set[UUID]
) -> list[tuple[EvaluationSetVersion, list[UUID]]]:
    """Return the versions to link now, each with the models that teach, newest first."""
    former_counts = dict(ruler.links.values_list("version", "model_count"))
    due = []
    for version in select_link_versions(ruler.task):
        runs = find_answered_runs(version).filter(submission__in=model_ids)
        # Newest first: they resemble the models that come next.
        known_ids = list(runs.values_list("submission", flat=True)[:MAX_KNOWN])
        former_count = former_counts.get(version.pk, 0)
        if len(known_ids) >= max(MIN_MODELS, REFIT_SHARE * former_count):
            due.append((version, known_ids))
    return due


class _Refreshing:
    """One refresh of a ruler. It reads each set's file and each model's answers at most once."""

    def __init__(
        self, ruler: Ruler, versions: Sequence[EvaluationSetVersion], beat: Callable[[], None]
    ) -> None:
        self._ruler, self._beat = ruler, beat
        self._sources = SourceAnswers(versions)
        # By set, not version: a newer version keeps the uids of its rows.
        place_by_row = {
            (version.evaluation_set_id, uid): place
            for place, (version, uid) in enumerate(self._sources.rows)
        }
        anchors = ruler.anchors.values_list("version__evaluation_set", "uid")
        # A row that was withdrawn since the choice has no answers any more.
        self._anchors = np.array([place_by_row.get(row, -1) for row in anchors], dtype=np.intp)

    def run(
        self, new_ids: Sequence[UUID], due: Sequence[tuple[EvaluationSetVersion, list[UUID]]]
    ) -> bool:
        """Read, fit and store; return whether anything was stored."""
        if (self._anchors < 0).any():
            return False  # the page tells the owners that anchors were withdrawn
        reading_ids = set(new_ids)
        for _version, known_ids in due:
            reading_ids.update(known_ids)
        # Once for all sets: most models teach several.
        answers = self._sources.read(list(reading_ids), self._beat)
        links = []
        for version, known_ids in due:
            self._beat()
            known = {pk: answers[pk] for pk in known_ids if pk in answers}
            links.append(self._link(version, known, len(known_ids)))
        with transaction.atomic():
            # The lock comes after the fit, which takes seconds, so the owner may have retired it.
            rulers = Ruler.objects.select_for_update(of=("self",)).filter(retired_at=None)
            if not rulers.filter(pk=self._ruler.pk).exists():
                return False
            is_linked_anew = self._store_links(links)
            self._store_standings({pk: answers[pk] for pk in new_ids if pk in answers})
            store_expected_scores(self._ruler, is_linked_anew=is_linked_anew)
        return True

    def _link(
        self, version: EvaluationSetVersion, known: Mapping[UUID, Answers], model_count: int
    ) -> RulerLink:
        """Return a version's link, not stored. It has no fit if too few different models teach."""
        link = RulerLink(ruler=self._ruler, version=version, model_count=model_count)
        reader = AnswerReader(version)
        runs = find_answered_runs(version).filter(submission__in=list(known))
        ids, right_rows = [], []
        for run in runs.iterator(chunk_size=100):
            right_answers = reader.read_right_answers(run)
            if right_answers is not None:
                ids.append(run.submission_id)
                right_rows.append(right_answers)
        try:
            folds = split_whole_models(identify_whole_models(ids))
        # Stored without a fit, so that the same few models aren't read again each minute.
        except TooFewModels:
            return link
        is_right = np.array([known[pk] for pk in ids])
        target = np.array(right_rows)

        def choose(taught: NDArray[np.bool_]) -> NDArray[np.intp]:
            return choose_anchors(
                is_right[taught],
                self._sources.groups,
                len(self._anchors),
                np.random.default_rng(self._ruler.seed),
                np.arange(is_right.shape[1]),
            )

        # One group: each set is linked by itself, since other models have run other sets.
        shares = target.mean(axis=1, keepdims=True)
        linked = link_shares(is_right, shares, folds, self._anchors, choose)
        link.fit, link.half_width = pack_ruler(linked), float(linked.even_half_widths[0])
        link.item_error = compute_item_error(target)
        return link

    def _store_links(self, links: Sequence[RulerLink]) -> bool:
        """Replace these links, and delete those of former versions; return whether any changed."""
        current = select_link_versions(self._ruler.task)
        outdated = self._ruler.links.exclude(version__in=current)
        former = self._ruler.links.filter(version__in=[link.version_id for link in links])
        # With their scores, which the former fit expected.
        deleted_count = outdated.delete()[0] + former.delete()[0]
        RulerLink.objects.bulk_create(links)
        return bool(links or deleted_count)

    def _store_standings(self, answers: Mapping[UUID, Answers]) -> None:
        # A bit for each anchor: a thousand models take a few kilobytes.
        rows = [
            RulerStanding(
                ruler=self._ruler,
                submission_id=pk,
                answers=np.packbits(is_right[self._anchors]).tobytes(),
            )
            for pk, is_right in answers.items()
        ]
        # Another worker may have added the same model: its answers are the same.
        RulerStanding.objects.bulk_create(rows, BATCH_ROWS, ignore_conflicts=True)


def compute_item_error(is_right: Answers) -> float:
    """Return the standard error (0-1) of the models' mean share that the choice of items causes.

    Other items of the same kind would have been harder or easier for all models at once.
    """
    # Means over models first, because an item is hard or easy for all of them at once.
    item_shares = is_right.mean(axis=0)
    return float(item_shares.std(ddof=1) / len(item_shares) ** 0.5)


def store_expected_scores(ruler: Ruler, *, is_linked_anew: bool) -> None:
    """Store the scores that are still missing, and the means of models whose scores changed.

    So a new model costs its own rows only. The caller holds the ruler's lock.

    is_linked_anew: whether sets were linked, or left the ruler, which changes everybody's mean.
    """
    for link in ruler.links.exclude(fit=None).order_by("pk"):
        # After a new fit these are all models, because its former scores went with the former link.
        lacking = list(ruler.standings.exclude(scores__link=link).order_by("pk"))
        if not lacking:
            continue
        predicted = unpack_ruler(bytes(link.fit or b"")).predict(
            _unpack_answers(lacking, ruler.anchor_count)
        )
        table = np.column_stack([predicted.shares, predicted.low, predicted.high]).tolist()
        ExpectedScore.objects.bulk_create(
            [
                ExpectedScore(standing=standing, link=link, value=value, low=low, high=high)
                for standing, (value, low, high) in zip(lacking, table, strict=True)
            ],
            BATCH_ROWS,
        )
    _store_link_means(ruler)
    changed = ruler.standings.all() if is_linked_anew else ruler.standings.filter(value=None)
    _store_means(list(changed))


def _unpack_answers(standings: Sequence[RulerStanding], anchor_count: int) -> Answers:
    """Return the models' answers to the anchors: one row for each model."""
    packed = np.frombuffer(b"".join(bytes(row.answers) for row in standings), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(standings), -1), axis=1, count=anchor_count)
    return np.asarray(bits.astype(bool))


def _store_link_means(ruler: Ruler) -> None:
    """Store for each set the mean that all models of the ruler would have on it."""
    links = list(ruler.links.annotate(mean=Avg("scores__value")).defer("fit"))
    for link in links:
        link.value = link.mean
    RulerLink.objects.bulk_update(links, ["value"])


def _store_means(standings: Sequence[RulerStanding]) -> None:
    """Store each model's mean over the linked sets.

    The ends are means, too: as wide as if the errors on all sets were the same, so never too
    narrow.
    """
    scores = ExpectedScore.objects.filter(standing__in=standings).order_by()
    means = scores.values_list("standing").annotate(Avg("value"), Avg("low"), Avg("high"))
    mean_by_standing = {pk: mean for pk, *mean in means}
    for standing in standings:
        # Without a linked set there is nothing to expect.
        standing.value, standing.low, standing.high = mean_by_standing.get(
            standing.pk, (None, None, None)
        )
    RulerStanding.objects.bulk_update(standings, ["value", "low", "high"], BATCH_ROWS)


def _choose_newest(model_ids: Sequence[UUID]) -> list[UUID]:
    newest = Submission.objects.filter(pk__in=model_ids).order_by("-queued_at", "pk")
    return list(newest.values_list("pk", flat=True)[:MAX_KNOWN])
