"""Prepare the page on which an owner releases a round: its versions, or a form and a preview."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from core.web.refusals import as_form_error
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Census, Forecast, forecast, propose_sizes
from evaluation.dataset_releases.forms import ReleaseForm
from evaluation.dataset_releases.services import check_sizes, count_withdrawn_since
from evaluation.dataset_releases.splits import HELD, PROGRAM, SPLITS, Sizes
from evaluation.models import Dataset
from tasks.models import Round
from tasks.rounds.states import describe_wait
from tasks.selectors import count_still_writing

ROWS_BUTTON = "rows"
"""The name of the button that releases; its value repeats the rows of each split that it shows."""
SIZES_BUTTON = "sizes"
"""The name of the buttons that choose a proposal; their value is dev and test."""


class ReleasePage:
    """The page for releasing a round, with the submitted form, if any.

    versions: the finished versions, oldest first. data: the posted fields. The button that releases
    carries the number of rows it shows, which confirms them.
    """

    def __init__(
        self, round: Round, versions: Sequence[Dataset], data: Mapping[str, Any] | None = None
    ) -> None:
        self._round, self._versions = round, versions
        self._sent = None if data is None else dict(data.items())
        if self._sent and SIZES_BUTTON in self._sent:
            # A proposal was chosen: fill the form with it, and show its preview.
            dev, _dash, test = self._sent[SIZES_BUTTON].partition("-")
            self._sent |= {"train": "", "dev": dev, "test": test}
        self.form = ReleaseForm(self._suggested, self._sent)
        # A later version keeps the splits, so there is nothing to check.
        if self._sent is not None and self.form.is_valid() and not self._versions:
            with as_form_error(self.form):
                check_sizes(self._census, self.form.options(""))

    @cached_property
    def _census(self) -> Census:
        return take_census(self._round)

    @cached_property
    def _proposals(self) -> list[Sizes]:
        return propose_sizes(self._census.counts)

    @property
    def _suggested(self) -> Sizes | None:
        if self._versions:
            return None
        return next(iter(self._proposals), Sizes(None, 0, 0))

    @property
    def is_confirmed(self) -> bool:
        """Whether a valid form requested a release."""
        # Buttons for proposals and for the preview send the form without confirming anything.
        is_sent = self._sent is not None and not self._sent.keys() & {SIZES_BUTTON, "preview"}
        return is_sent and not self.form.errors

    def options(self, url: str) -> Options:
        """Return the options of the release. url: of the public page."""
        options, rows_text = self.form.options(url), (self._sent or {}).get(ROWS_BUTTON)
        if not rows_text:
            return options
        return replace(options, confirmed=_read_rows(rows_text))

    @property
    def values(self) -> dict[str, Any]:
        """The values for the template."""
        values: dict[str, Any] = {"form": self.form, "versions": self._versions}
        if not self._versions:
            return values | self._preview()
        newest_version = self._versions[-1]
        return values | {
            "withdrawn": count_withdrawn_since(newest_version),
            "may_be_undone": len(self._versions) == 1 and newest_version.downloaded_at is None,
            "left_out": describe_left_out(newest_version.numbers.get("reasons", {})),
        }

    def _preview(self) -> dict[str, Any]:
        census = self._census
        preview = forecast(census, self._read_sizes(), seed=self._read_seed())
        choices = []
        for sizes in self._proposals:
            choice = forecast(census, sizes, seed=0)
            lost = sum(choice.lost.values())
            choices.append({"sizes": sizes, "rows": choice.rows, "lost": lost})
        verified_counts, other_counts = census.counts.labels(True), census.counts.labels(False)
        labels = sorted(verified_counts + other_counts)
        return {
            "preview": preview,
            "rows": describe_rows(preview),
            "confirms": _write_rows(preview.rows),
            "left_out": describe_left_out(preview.left_out),
            "choices": choices,
            "authors": census.counts.authors,
            "waits": self._describe_wait(),
            "is_over": self._round.state in (Round.State.CLOSED, Round.State.RELEASED),
            "labels": [(label, verified_counts[label], other_counts[label]) for label in labels],
        }

    def _describe_wait(self) -> str:
        """Return a sentence about the writers for whom the release waits; "" if there are none."""
        people = count_still_writing(self._round)
        return describe_wait(self._round, people) if people else ""

    def _read_sizes(self) -> Sizes:
        """Return the sizes in the form if they are valid, otherwise the suggested ones."""
        # A form with a wrong licence still previews its sizes.
        is_read = not {"train", "dev", "test", "seed"} & self.form.errors.keys()
        if self._sent is not None and is_read:
            return self.form.options("").sizes(self._census.counts)
        return self._suggested or Sizes(None, 0, 0)

    def _read_seed(self) -> int:
        return self.form.cleaned_data.get("seed", 0) if self._sent is not None else 0


def describe_left_out(left_out: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return (reason as text, number of examples) for the examples that are left out."""
    return [(_(words), left_out[name]) for name, words in REASONS.items() if left_out.get(name)]


def describe_rows(planned_release: Forecast) -> list[tuple[str, int]]:
    """Return (displayed name, number of rows) for the splits of a release."""
    names = {HELD: _("held back"), PROGRAM: _("program (written by programs)")}
    rows = []
    for split in (*SPLITS, PROGRAM, HELD):
        if split in planned_release.rows:
            rows.append((names.get(split, split), planned_release.rows[split]))
    return rows


def _write_rows(rows: Mapping[str, int]) -> str:
    return ",".join(f"{split}:{n}" for split, n in rows.items())


def _read_rows(text: str) -> dict[str, int]:
    """Parse what `_write_rows` wrote. Any other text gives rows that no release matches."""
    rows = {}
    for pair in text.split(","):
        split, _colon, n = pair.partition(":")
        if n.isdecimal():
            rows[split] = int(n)
    return rows
