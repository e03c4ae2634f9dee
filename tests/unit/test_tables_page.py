"""docs/states-roles-limits.md says what the code says."""

import importlib
import re
from pathlib import Path

import pytest
from django.conf import settings

from annotation.models import Example
from core.web.throttles import REQUESTS_PER_HOUR
from dynabench.campaigns.models import Campaign, Payment, Place
from dynabench.communities.models import CommunityProposal, CommunityTask
from dynabench.webhooks.models import Delivery
from evaluation.isolation.sandbox.limits import Limits as RunLimits
from evaluation.isolation.uploads.archives import ArchiveLimits
from evaluation.models import CustomMetric
from evaluation.models.jobs import Job
from tasks.config.schema import Battles, Limits
from tasks.models import Round, TaskProposal
from tasks.rounds.states import NEXT_STATES
from tasks.writing_time import WRITING_TIME
from validation.models import Consensus

PAGE = (Path(__file__).parents[2] / "docs/states-roles-limits.md").read_text()
UNITS = {"": 1, "%": 0.01, "hour": 3600, "minutes": 60, "seconds": 1, "MB": 10**6}
UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rows(heading):
    """The cells of every table below a heading, without the heads of the tables."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"(?m)^\|(.*)\|$", section)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [row for number, row in enumerate(cells) if not is_head(cells, number)]


def is_head(cells, number):
    """Whether a line is the head of a table or the rule below it."""
    return any(row and set(row[0]) == {"-"} for row in cells[number : number + 2])


def states(heading):
    return [state for row in rows(heading) for state in row[0].split(", ")]


def value(words):
    """`16 MiB` as a number of bytes, `15 minutes` as seconds, `5%` as a share."""
    number, unit = re.fullmatch(r"([\d,.]+) ?(\D*)", words).groups()
    return float(number.replace(",", "")) * UNITS[unit]


def test_the_states():
    assert states("Rounds") == Round.State.values
    outcomes = [*Consensus.State.values, *Example.Outcome.values]
    assert states("Examples") == outcomes
    assert states("Submitted models, releases and other jobs") == Job.State.values
    assert states("Campaigns") == [*Campaign.State.values, *Place.State.values]
    assert dict(rows("Proposals and assignments")) == {
        "proposal for a task": ", ".join(TaskProposal.State.values),
        "proposal for a community": ", ".join(CommunityProposal.State.values),
        "task in a community": ", ".join(CommunityTask.State.values),
        "an owner's metric": ", ".join(CustomMetric.Review.values),
        "delivery of a webhook": ", ".join(Delivery.State.values),
        "payment": ", ".join(Payment.State.values),
    }


def test_the_steps_of_a_round():
    assert {row[0]: row[2] for row in rows("Rounds")} == {
        state.value: ", ".join(following) for state, following in NEXT_STATES.items()
    }


def test_the_limits_of_people():
    limits, battles = Limits(), Battles()
    assert [value(row[1]) for row in rows("Limits for people")] == [
        limits.tries_per_context,
        limits.tries_per_day,
        limits.share_of_round,
        limits.share_of_votes,
        battles.per_day,
        battles.answers,
        WRITING_TIME.total_seconds(),
        REQUESTS_PER_HOUR["try-out"],
        settings.SUBMISSIONS_PER_DAY,
        settings.REFUSED_SUBMISSIONS_PER_DAY,
    ]


@pytest.mark.parametrize("row", rows("Limits for files"), ids=lambda row: row[0])
def test_the_limits_of_files(row):
    path, name = re.fullmatch(r"`(.+)\.py` `(\w+)`", row[2]).groups()
    assert value(row[1]) == getattr(importlib.import_module(path.replace("/", ".")), name)


def test_the_limits_of_submitted_models():
    largest, all_of_one = re.search(
        r"at most (\d+ GiB), and one person's models (\d+ GiB)", PAGE
    ).groups()
    assert value(largest) == settings.LARGEST_UPLOAD_BYTES == ArchiveLimits().bytes
    assert value(all_of_one) == settings.QUOTA_BYTES


def test_the_limits_of_programs():
    assert dict(rows("Limits for programs")) == settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]


def test_the_limits_of_runs():
    limits = RunLimits()
    assert [value(row[1]) for row in rows("Limits for a model that runs here")] == [
        limits.seconds,
        limits.memory_bytes,
        limits.cpus,
        limits.processes,
        limits.output_bytes,
        limits.line_bytes,
        limits.scratch_bytes,
    ]
