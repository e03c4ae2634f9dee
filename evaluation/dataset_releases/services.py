"""Request a version of a round's dataset."""

import uuid
from dataclasses import asdict, replace
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext

from core.accounts.models import User
from core.days import get_today
from core.errors import Refused
from core.jobs.queue import enqueue
from core.periodic import register_sweep
from evaluation.dataset_releases.anchors import holds_serving_anchors
from evaluation.dataset_releases.build import Options, check_confirmed
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Census, Forecast, compute_forecast, propose_sizes
from evaluation.dataset_releases.rows import pick_entries
from evaluation.dataset_releases.splits import SPLITS, RowCounts, SplitSizes
from evaluation.isolation.queue.leases import requeue_jobs
from evaluation.models import Dataset
from tasks.models import Round
from tasks.rounds.states import describe_wait
from tasks.selectors import count_late_writers

State = Dataset.State
HOLD_BACK_TIME = timedelta(days=183)
"""How long a fifth of a round is held back if its owner wants this: half a year."""


class ReleaseRefused(Refused):
    """Raised when a round cannot be released as requested. The message says why and what to do."""

    code = "release"


def suggest_sizes(counts: RowCounts) -> SplitSizes:
    """Return the first proposed sizes. Without rows, dev and test are 0."""
    return next(iter(propose_sizes(counts)), SplitSizes(None, 0, 0))


def check_sizes(census: Census, options: Options) -> Forecast:
    """Return the forecast of a release with these options.

    Raises ReleaseRefused if the release is impossible, with the reason and possible sizes.
    """
    counts = census.counts
    requested_sizes = options.compute_sizes(counts)
    planned_release = compute_forecast(census, requested_sizes, seed=options.seed)
    sizes = planned_release.plan.sizes
    if not counts.total:
        _check_without_people(census, requested_sizes)
    elif not planned_release.total:
        raise ReleaseRefused(gettext("These sizes leave out every row. Leave Train empty."))
    if requested_sizes.held and not (sizes.held and any(sizes[:3])):
        raise ReleaseRefused(
            gettext(
                "Too few people wrote confirmed examples for a held-back part. Untick “Hold "
                "back” and release the round again."
            )
        )
    # A split with fewer rows than requested is refused, not reduced silently.
    short_splits = [
        split
        for split in SPLITS
        if (getattr(sizes, split) or 0) < (getattr(requested_sizes, split) or 0)
    ]
    if short_splits:
        possible_sizes = suggest_sizes(counts)
        raise ReleaseRefused(
            gettext(
                "You asked for too many rows in %(splits)s. An author can be in only "
                "one split, and dev and test contain only confirmed examples. Confirmed "
                "examples: %(rows)d. Known authors: %(authors)d. Your sizes would give "
                "train %(train)d, dev %(dev)d and test %(test)d. For example, use dev "
                "%(possible_dev)d and test %(possible_test)d, with all others in train."
            )
            % {
                "splits": ", ".join(short_splits),
                "rows": counts.count_labels(True).total(),
                "authors": counts.author_count,
                **sizes._asdict(),
                "possible_dev": possible_sizes.dev,
                "possible_test": possible_sizes.test,
            }
        )
    return planned_release


def _check_without_people(census: Census, requested_sizes: SplitSizes) -> None:
    """Raise ReleaseRefused unless a round without rows by people can be released as requested.

    Either programs wrote all its rows, or it has none.
    """
    if census.program_rows:
        if requested_sizes.train or requested_sizes.dev or requested_sizes.test:
            raise ReleaseRefused(
                gettext(
                    "Programs wrote every row of this round (%(rows)d), so all rows go "
                    "to the split program. Enter 0 for dev and test, and leave train "
                    "empty."
                )
                % {"rows": census.program_rows}
            )
        return
    if not census.left_out:
        raise ReleaseRefused(
            gettext("This round has no examples yet. You can release it once it has some.")
        )
    reasons = ", ".join(
        f"{gettext(REASONS[name])} ({row_count})" for name, row_count in census.left_out.items()
    )
    message = gettext(
        "None of this round's examples can be released. Reasons, with the number of examples: "
        "%(reasons)s."
    )
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
        # The first version's options stay; older releases lack some of them.
        names = ("train", "dev", "test", "seed", "hold_back", "held_until", "canary")
        options = replace(options, **pick_entries(first_version.options, names))
        # None: not stated. Empty texts: the owner removed them.
        if options.statements is None:
            newest_version = round.datasets.filter(state=State.DONE).order_by("version").last()
            options = replace(options, statements=get_statements(newest_version))
    else:
        check_confirmed(check_sizes(take_census(round), options), options)
        # Fixed by the first version, because later ones must not change the day.
        until = get_today() + HOLD_BACK_TIME if options.hold_back else ""
        # A random text in every row, so that training corpora can be searched for the data.
        canary = f"dynabench:{uuid.uuid4()}"
        options = replace(options, held_until=str(until), canary=canary)
    with transaction.atomic():
        # Locked, so that a second request finds the first one's version and is refused.
        locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
        last_dataset = locked_round.datasets.order_by("-version").first()
        _check_release_allowed(locked_round, last_dataset)
        version = 1
        if last_dataset:
            # A failed version was never public, so its number is used again.
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
        # Inside the transaction, so that the message appears with the row.
        if is_new:
            enqueue(dataset.function, dataset.pk)
        else:
            requeue_jobs(round.datasets.filter(pk=dataset.pk))
            dataset.refresh_from_db()
    return dataset


def get_statements(dataset: Dataset | None) -> dict[str, str]:
    """Return the owner's statements in a version, by name.

    Empty without a version, and for releases from before statements existed.
    """
    return (dataset and dataset.options.get("statements")) or {}


def _check_release_allowed(round: Round, last_dataset: Dataset | None) -> None:
    """Raise ReleaseRefused unless another version of the round may be requested now."""
    if last_dataset and not last_dataset.is_over:
        raise ReleaseRefused(
            gettext("We're still building version %(number)d. Wait until it's ready.")
            % {"number": last_dataset.version}
        )
    if round.state not in Round.FINISHED_STATES:
        raise ReleaseRefused(gettext("You can only release a closed round. Close it first."))
    people = count_late_writers(round)
    if people:
        raise ReleaseRefused(describe_wait(round, people))
    if (
        last_dataset
        and last_dataset.state == State.DONE
        and not (count_rows_withdrawn_since(last_dataset) or is_publication_due(last_dataset))
    ):
        raise ReleaseRefused(
            gettext(
                "No examples have been withdrawn since version %(number)d, so a new "
                "version would be the same."
            )
            % {"number": last_dataset.version}
        )


def is_publication_due(dataset: Dataset) -> bool:
    """Return whether the day has come on which the dataset's held-back rows are published.

    Rows that are anchors of a ruler wait until it is retired.
    """
    has_come = bool(dataset.held_until and dataset.held_until <= get_today())
    return has_come and not holds_serving_anchors(dataset.round)


@register_sweep(why="Parts that a release holds back are released on their day.")
def release_held_rows() -> list[Dataset]:
    """Request versions that publish held-back rows whose day has come; return these versions."""
    done_datasets = Dataset.objects.filter(state=State.DONE)
    # Only the newest version of each round, which may publish rows held back earlier.
    newer = Dataset.objects.filter(round=OuterRef("round"), version__gt=OuterRef("version"))
    holding_releases = done_datasets.filter(~Exists(newer), options__hold_back=True).select_related(
        "round__task"
    )
    new_versions = []
    for dataset in holding_releases:
        if is_publication_due(dataset):
            options, actor = Options(**dataset.options), dataset.requested_by
            new_versions.append(request_release(round=dataset.round, options=options, actor=actor))
    return new_versions


def count_rows_withdrawn_since(dataset: Dataset) -> int:
    """Return how many rows of a version its successor would replace with tombstones."""
    rows = dataset.items.filter(is_withdrawn=False)
    withdrawn_rows = rows.filter(example__isnull=True) | rows.filter(
        example__retracted_at__isnull=False
    )
    return withdrawn_rows.count()
