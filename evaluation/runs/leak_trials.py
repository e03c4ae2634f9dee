"""Read the trials of leaks as their readers may see them. Loads numpy and scipy."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from evaluation.models import EvaluationSet, LeakTrial
from evaluation.scoring.corrections import adjust_by_holm
from evaluation.scoring.leaks import ALARM_CHANCE, LeakEstimate
from evaluation.test_sets.sealing import count_steps

CSV_COLUMNS = (
    *("model", "id", "round", "released_n", "held_n", "released_authors", "held_authors"),
    *("earlier_models", "difference", "low", "high", "p_value", "p_corrected", "is_found"),
    *("largest_leak", "smallest_leak"),
)


@dataclass(frozen=True)
class ShownTrial:
    """A trial with the numbers that the reader may see; `estimate` is None with too few rows.

    p_corrected: for all trials that are listed together.
    """

    trial: LeakTrial
    estimate: LeakEstimate | None
    p_corrected: float | None

    @property
    def is_found(self) -> bool:
        """Whether a leak was found."""
        return self.p_corrected is not None and self.p_corrected <= ALARM_CHANCE

    @property
    def difference(self) -> dict[str, float | None]:
        """The difference in points with its 95 % interval."""
        if self.estimate is None:
            return {"value": None, "low": None, "high": None}
        low, high = self.estimate.interval
        return {"value": 100 * self.estimate.difference, "low": 100 * low, "high": 100 * high}

    @property
    def largest_leak(self) -> float | None:
        """The bound above which leaks can be excluded, in points."""
        return None if self.estimate is None else 100 * self.estimate.largest_leak

    @property
    def smallest_leak(self) -> float | None:
        """The leak that a trial of this size finds in 80 % of the cases, in points."""
        return None if self.estimate is None else 100 * self.estimate.smallest_leak

    def build_json(self) -> dict[str, Any]:
        """Return the trial as JSON values, in points."""
        names = ("released_n", "held_n", "released_authors", "held_authors", "earlier_models")
        return {
            "id": str(self.trial.submission_id),
            "round": self.trial.round.number,
            **{name: getattr(self.trial, name) for name in names},
            "difference": self.difference,
            "p_value": None if self.estimate is None else self.estimate.p_value,
            "p_corrected": self.p_corrected,
            "is_found": self.is_found,
            "largest_leak": self.largest_leak,
            "smallest_leak": self.smallest_leak,
        }


def find_shown_trials(
    submission_ids: Collection[UUID], *, is_exact: bool = False
) -> list[ShownTrial]:
    """Return the newest trial of each of these models on each round, with corrected p-values.

    is_exact: whether the reader edits the task, and sees hidden sets and exact numbers. One query.
    """
    trials = LeakTrial.objects.filter(submission__in=submission_ids).select_related(
        "round",
        "released_run__version__evaluation_set",
        "released_run__version__dataset",
        "held_run__version__evaluation_set",
        "held_run__version__dataset",
    )
    # Logs, measurements and numbers of releases are large.
    for path in ("released_run", "held_run"):
        trials = trials.defer(
            f"{path}__log",
            f"{path}__measurements",
            f"{path}__version__slices",
            f"{path}__version__dataset__numbers",
        )
    # A later version of a release leaves out what was withdrawn, so its trial replaces the former.
    newest: dict[tuple[UUID, int], LeakTrial] = {}
    for trial in trials.order_by("made_at", "pk"):
        newest[trial.submission_id, trial.round_id] = trial
    shown = [
        (trial, _limit_estimate(trial, is_exact=is_exact))
        for trial in newest.values()
        if is_exact or _may_be_shown(trial)
    ]
    # Corrected over what the reader sees: hidden trials can't raise an alarm.
    p_values = [estimate.p_value for _trial, estimate in shown if estimate is not None]
    corrected = iter(adjust_by_holm(p_values))
    return [
        ShownTrial(trial, estimate, None if estimate is None else next(corrected))
        for trial, estimate in shown
    ]


def _may_be_shown(trial: LeakTrial) -> bool:
    """Return whether others than the task's editors may see a trial."""
    versions = (trial.released_run.version, trial.held_run.version)
    if any(version.evaluation_set.access == EvaluationSet.Access.HIDDEN for version in versions):
        return False
    # The number of results on a sealed set is limited, and what is shown counts on one set only.
    is_hidden_result = versions[1].is_sealed and not trial.held_run.is_shown
    return not versions[0].is_sealed and not is_hidden_result


def _limit_estimate(trial: LeakTrial, *, is_exact: bool) -> LeakEstimate | None:
    """Return a trial's estimate, in steps if the held-back answers are secret to the reader."""
    if trial.difference is None or trial.error is None or trial.degrees_of_freedom is None:
        return None
    estimate = LeakEstimate(trial.difference, trial.error, trial.degrees_of_freedom)
    if is_exact or not trial.held_run.version.is_sealed:
        return estimate
    return estimate.round_to(count_steps(min(trial.held_n, trial.released_n)))


def iterate_csv_rows(named_trials: Sequence[tuple[str, ShownTrial]]) -> Iterator[Sequence[Any]]:
    """Yield the heading and a row for each trial, in points. named_trials: with models' names."""
    yield CSV_COLUMNS
    for name, shown in named_trials:
        body = shown.build_json()
        body |= {"model": name, **body["difference"], "difference": body["difference"]["value"]}
        yield [body[column] for column in CSV_COLUMNS]
