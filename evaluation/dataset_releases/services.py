"""Request a version of a round's dataset."""

import uuid
from dataclasses import asdict, replace
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext

from core.accounts.models import User
from core.days import today
from core.errors import Refused
from core.jobs.queue import enqueue
from core.periodic import each_sweep
from evaluation.dataset_releases.build import Options, check_confirmed
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Census, Forecast, forecast, propose_sizes
from evaluation.dataset_releases.rows import pick
from evaluation.dataset_releases.splits import SPLITS, Counts, Sizes
from evaluation.isolation.queue.leases import queue_again
from evaluation.models import Dataset
from tasks.models import Round
from tasks.rounds.states import describe_wait
from tasks.selectors import count_still_writing

State = Dataset.State
HOLD_BACK_TIME = timedelta(days=183)
"""Half a year: how long a fifth of a round is held back if its owner wants it."""


class ReleaseRefused(Refused):
    """Raised when a round cannot be released as requested. The message says why and what to do."""

    code = "release"


def suggest_sizes(counts: Counts) -> Sizes:
    """Return the first of the proposals. Without rows, dev and test are 0."""
    return next(iter(propose_sizes(counts)), Sizes(None, 0, 0))


def check_sizes(census: Census, options: Options) -> Forecast:
    """Return the forecast of a release with these options.

    Raises ReleaseRefused if the release is impossible, with the reason and possible sizes.
    """
    counts = census.counts
    requested_sizes = options.sizes(counts)
    planned_release = forecast(census, requested_sizes, seed=options.seed)
    sizes = planned_release.plan.sizes
    if not counts.total:
        _check_without_people(census, requested_sizes)
    elif not planned_release.total:
        raise ReleaseRefused(gettext("These sizes leave every row out. Leave Train empty."))
    if requested_sizes.held and not (sizes.held and any(sizes[:3])):
        raise ReleaseRefused(
            gettext(
                "What is held back needs authors of its own, and too few people wrote confirmed "
                "examples. Release the round without holding any back."
            )
        )
    # A split that gets fewer rows than requested is refused, not made smaller in silence.
    short_splits = [
        s for s in SPLITS if (getattr(sizes, s) or 0) < (getattr(requested_sizes, s) or 0)
    ]
    if short_splits:
        possible_sizes = suggest_sizes(counts)
        raise ReleaseRefused(
            gettext(
                "Too many rows are wanted for %(splits)s: no author may be in two splits, and dev "
                "and test take confirmed examples only. The round has %(rows)d of them by "
                "%(authors)d known authors. Your sizes would give train %(train)d, dev %(dev)d and "
                "test %(test)d. Possible is, for example, dev %(possible_dev)d, test "
                "%(possible_test)d and all others in train."
            )
            % {
                "splits": ", ".join(short_splits),
                "rows": counts.labels(True).total(),
                "authors": counts.authors,
                **sizes._asdict(),
                "possible_dev": possible_sizes.dev,
                "possible_test": possible_sizes.test,
            }
        )
    return planned_release


def _check_without_people(census: Census, requested_sizes: Sizes) -> None:
    """Raise ReleaseRefused unless a round without rows by people can be released as requested.

    Either programs wrote all its rows, or it has none.
    """
    if census.programs:
        if requested_sizes.train or requested_sizes.dev or requested_sizes.test:
            raise ReleaseRefused(
                gettext(
                    "All %(rows)d rows of this round are by programs and go to the split program. "
                    "Enter 0 for dev and test, and leave train empty."
                )
                % {"rows": census.programs}
            )
        return
    if not census.left_out:
        raise ReleaseRefused(gettext("This round has no examples, so nothing can be released."))
    reasons = "; ".join(f"{gettext(REASONS[name])}: {n}" for name, n in census.left_out.items())
    message = gettext("Nothing in this round can be released. %(reasons)s.")
    raise ReleaseRefused(message % {"reasons": reasons})


def request_release(*, round: Round, options: Options, actor: User | None) -> Dataset:
    """Enqueue a job that builds the next version of a round's dataset. Locks the round.

    The first version is split according to `options`. Later versions keep every row and split,
    replace withdrawn examples with tombstones, and ignore the sizes in `options`. A failed version
    is retried under its number. Raises ReleaseRefused, and RoundChanged if the first version would
    differ from what `options` confirms.
    """
    first_version = round.datasets.filter(state=State.DONE).order_by("version").first()
    if first_version:
        # What the first version decided stays; older releases lack some of the options.
        names = ("train", "dev", "test", "seed", "hold_back", "held_until", "canary")
        options = replace(options, **pick(first_version.options, names))
    else:
        check_confirmed(check_sizes(take_census(round), options), options)
        # Fixed with the first version: later ones must not move the day.
        until = today() + HOLD_BACK_TIME if options.hold_back else ""
        # A random text in every row, by which training corpora can be searched for the data.
        canary = f"dynabench:{uuid.uuid4()}"
        options = replace(options, held_until=str(until), canary=canary)
    with transaction.atomic():
        locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
        last_dataset = locked_round.datasets.order_by("-version").first()
        _check_may_release(locked_round, last_dataset)
        version = 1
        if last_dataset:
            # A version that failed was never public: its number is used again.
            version = (
                last_dataset.version + 1
                if last_dataset.state == State.DONE
                else last_dataset.version
            )
        dataset, is_new = Dataset.objects.update_or_create(
            round=locked_round,
            version=version,
            defaults={
                "options": asdict(options),
                "requested_by": actor,
            },
        )
        # Inside the transaction: the message appears with the row. A version that failed is over.
        if is_new:
            enqueue(dataset.function, dataset.pk)
        else:
            queue_again(round.datasets.filter(pk=dataset.pk))
            dataset.refresh_from_db()
    return dataset


def _check_may_release(round: Round, last_dataset: Dataset | None) -> None:
    """Raise ReleaseRefused unless another version of the round may be requested now."""
    if last_dataset and not last_dataset.is_over:
        raise ReleaseRefused(
            gettext("Version %(number)d is being made. Wait until it is there.")
            % {"number": last_dataset.version}
        )
    if round.state not in (Round.State.CLOSED, Round.State.RELEASED):
        raise ReleaseRefused(gettext("Only a closed round can be released. Close it first."))
    people = count_still_writing(round)
    if people:
        raise ReleaseRefused(describe_wait(round, people))
    if (
        last_dataset
        and last_dataset.state == State.DONE
        and not (count_withdrawn_since(last_dataset) or is_due(last_dataset))
    ):
        raise ReleaseRefused(
            gettext(
                "Nothing was withdrawn since version %(number)d, so a new one would be the same."
            )
            % {"number": last_dataset.version}
        )


def is_due(dataset: Dataset) -> bool:
    """Return whether the day has come on which the dataset's held-back rows are published."""
    return bool(dataset.held_until and dataset.held_until <= today())


@each_sweep(why="Parts that a release holds back are released on their day.")
def release_held() -> list[Dataset]:
    """Request the versions that publish held-back rows that are due; return them."""
    done_datasets = Dataset.objects.filter(state=State.DONE)
    # Only the newest version of each round: an earlier one holds back what a later one may publish.
    newer = Dataset.objects.filter(round=OuterRef("round"), version__gt=OuterRef("version"))
    holding_releases = done_datasets.filter(~Exists(newer), options__hold_back=True).select_related(
        "round__task"
    )
    new_versions = []
    for dataset in holding_releases:
        if is_due(dataset):
            options, actor = Options(**dataset.options), dataset.requested_by
            new_versions.append(request_release(round=dataset.round, options=options, actor=actor))
    return new_versions


def count_withdrawn_since(dataset: Dataset) -> int:
    """Return how many rows of a version its successor would replace with tombstones."""
    rows = dataset.items.filter(is_withdrawn=False)
    withdrawn_rows = rows.filter(example__isnull=True) | rows.filter(
        example__retracted_at__isnull=False
    )
    return withdrawn_rows.count()
