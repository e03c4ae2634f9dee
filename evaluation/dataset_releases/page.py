"""Prepare the page on which an owner releases a round: its versions, or a form and a preview."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from core.web.refusals import show_as_form_error
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Census, Forecast, compute_forecast, propose_sizes
from evaluation.dataset_releases.forms import ReleaseForm
from evaluation.dataset_releases.services import (
    check_sizes,
    count_rows_withdrawn_since,
    get_statements,
)
from evaluation.dataset_releases.splits import HELD_SPLIT, PROGRAM_SPLIT, SPLITS, SplitSizes
from evaluation.models import Dataset
from tasks.models import Round
from tasks.rounds.states import describe_wait
from tasks.selectors import count_late_writers

ROWS_BUTTON = "rows"
"""The name of the button that releases. Its value repeats the shown row counts, by split."""
SIZES_BUTTON = "sizes"
"""The name of the buttons that choose proposed sizes. Their value is `<dev>-<test>`."""


class ReleasePage:
    """The page for releasing a round, with the submitted form, if any.

    versions: the finished versions, oldest first. data: the posted fields. The release button sends
    the row counts that it shows, so that the owner confirms them.
    """

    def __init__(
        self, round: Round, versions: Sequence[Dataset], data: Mapping[str, Any] | None = None
    ) -> None:
        self._round, self._versions = round, versions
        self._posted_data = None if data is None else dict(data.items())
        if self._posted_data and SIZES_BUTTON in self._posted_data:
            # A proposal was chosen, so fill the form with it, and show its preview.
            dev, _dash, test = self._posted_data[SIZES_BUTTON].partition("-")
            self._posted_data |= {"train": "", "dev": dev, "test": test}
        earlier_statements = get_statements(versions[-1] if versions else None)
        self.form = ReleaseForm(self._suggested_sizes, self._posted_data, earlier_statements)
        # A later version keeps the splits, so there is nothing to check.
        if self._posted_data is not None and self.form.is_valid() and not self._versions:
            with show_as_form_error(self.form):
                check_sizes(self._census, self.form.build_options(""))

    @cached_property
    def _census(self) -> Census:
        return take_census(self._round)

    @cached_property
    def _proposals(self) -> list[SplitSizes]:
        return propose_sizes(self._census.counts)

    @property
    def _suggested_sizes(self) -> SplitSizes | None:
        if self._versions:
            return None
        return next(iter(self._proposals), SplitSizes(None, 0, 0))

    @property
    def is_confirmed(self) -> bool:
        """Whether a valid form requested a release."""
        # Buttons for proposals and previews send the form without a confirmation.
        is_release_request = self._posted_data is not None and not self._posted_data.keys() & {
            SIZES_BUTTON,
            "preview",
        }
        return is_release_request and not self.form.errors

    def build_options(self, url: str) -> Options:
        """Return the options of the release. url: the URL of the dataset's public page."""
        options, rows_text = (
            self.form.build_options(url),
            (self._posted_data or {}).get(ROWS_BUTTON),
        )
        if not rows_text:
            return options
        return replace(options, confirmed=_parse_row_counts(rows_text))

    @property
    def values(self) -> dict[str, Any]:
        """The values for the template."""
        values: dict[str, Any] = {"form": self.form, "versions": self._versions}
        if not self._versions:
            return values | self._build_preview()
        newest_version = self._versions[-1]
        return values | {
            "withdrawn": count_rows_withdrawn_since(newest_version),
            "may_be_undone": len(self._versions) == 1 and newest_version.downloaded_at is None,
            "left_out": describe_left_out(newest_version.numbers.get("reasons", {})),
        }

    def _build_preview(self) -> dict[str, Any]:
        census = self._census
        preview = compute_forecast(census, self._read_sizes(), seed=self._read_seed())
        choices = []
        for sizes in self._proposals:
            choice = compute_forecast(census, sizes, seed=0)
            lost = sum(choice.lost_by_reason.values())
            choices.append({"sizes": sizes, "rows": choice.rows, "lost": lost})
        verified_counts, other_counts = (
            census.counts.count_labels(True),
            census.counts.count_labels(False),
        )
        labels = sorted(verified_counts + other_counts)
        return {
            "preview": preview,
            "rows": describe_rows(preview),
            "confirms": _format_row_counts(preview.rows),
            "left_out": describe_left_out(preview.left_out),
            "choices": choices,
            "authors": census.counts.author_count,
            "waits": self._describe_wait(),
            "is_over": self._round.state in Round.FINISHED_STATES,
            "labels": [(label, verified_counts[label], other_counts[label]) for label in labels],
        }

    def _describe_wait(self) -> str:
        """Return a sentence about the writers that the release waits for; "" if there are none."""
        people = count_late_writers(self._round)
        return describe_wait(self._round, people) if people else ""

    def _read_sizes(self) -> SplitSizes:
        """Return the sizes in the form if they are valid, otherwise the suggested ones."""
        # A form with an invalid licence still previews its sizes.
        are_sizes_valid = not {"train", "dev", "test", "seed"} & self.form.errors.keys()
        if self._posted_data is not None and are_sizes_valid:
            return self.form.build_options("").compute_sizes(self._census.counts)
        return self._suggested_sizes or SplitSizes(None, 0, 0)

    def _read_seed(self) -> int:
        return self.form.cleaned_data.get("seed", 0) if self._posted_data is not None else 0


def describe_left_out(left_out: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return (reason as text, number of examples) for the examples that are left out."""
    return [(_(reason), left_out[name]) for name, reason in REASONS.items() if left_out.get(name)]


def describe_rows(planned_release: Forecast) -> list[tuple[str, int]]:
    """Return (displayed name, number of rows) for the splits of a release."""
    names = {HELD_SPLIT: _("held back"), PROGRAM_SPLIT: _("program (written by programs)")}
    rows = []
    for split in (*SPLITS, PROGRAM_SPLIT, HELD_SPLIT):
        if split in planned_release.rows:
            rows.append((names.get(split, split), planned_release.rows[split]))
    return rows


def _format_row_counts(rows: Mapping[str, int]) -> str:
    return ",".join(f"{split}:{n}" for split, n in rows.items())


def _parse_row_counts(text: str) -> dict[str, int]:
    """Parse the text of `_format_row_counts`. Any other text gives counts that match no release."""
    rows = {}
    for pair in text.split(","):
        split, _colon, n = pair.partition(":")
        if n.isdecimal():
            rows[split] = int(n)
    return rows
