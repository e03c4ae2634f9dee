"""Reads of adversaries: their runs, and what is left of a run's budget."""

import hashlib
import json
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from dynabench.adversaries.fit import reads_context
from dynabench.adversaries.models import Adversary, AdversaryImage, AdversaryRun
from evaluation.models.jobs import UNFINISHED_STATES
from tasks.models import Context
from validation.decisions.counted import (
    JUDGED_EXAMPLE_STATES,
    STANDING_CONDITIONS,
    build_measure_condition,
)

MAX_CONTEXTS = 200


class BudgetLine(NamedTuple):
    """A limit of a run with what was used of it. most: None without a limit."""

    name: str | Promise
    used: float
    most: float | None

    @property
    def left(self) -> float | None:
        """Return what is left; None without a limit."""
        return None if self.most is None else max(0, self.most - self.used)


def with_last_run(adversaries: QuerySet[Adversary]) -> QuerySet[Adversary]:
    """Annotate adversaries with the state of their last run and why it ended; in use first.

    Also annotates has_waiting_image: whether an owner could allow an image.
    """
    last_runs = AdversaryRun.objects.filter(adversary=OuterRef("pk")).order_by("-pk")
    return adversaries.annotate(
        has_waiting_image=Exists(_select_waiting_images().filter(adversary=OuterRef("pk"))),
        last_state=Subquery(last_runs.values("state")[:1]),
        last_end=Subquery(last_runs.values("ended_by")[:1]),
    ).order_by(F("retired_at").asc(nulls_first=True), "pk")


def find_current_run(adversary: Adversary) -> AdversaryRun | None:
    """Return the adversary's queued or running run, or None."""
    return adversary.runs.filter(state__in=UNFINISHED_STATES).first()


def find_allowed_image(adversary: Adversary) -> AdversaryImage | None:
    """Return the newest checked image that an owner has allowed, or None."""
    checked_images = adversary.images.filter(state=AdversaryImage.State.DONE)
    return checked_images.filter(allowed_at__isnull=False).first()


def find_waiting_image(adversary: Adversary) -> AdversaryImage | None:
    """Return the newest checked image that an owner could allow, or None."""
    return _select_waiting_images().filter(adversary=adversary).first()


def _select_waiting_images() -> QuerySet[AdversaryImage]:
    """Select checked images that nobody has allowed, and that no newer one has replaced."""
    newer_images = AdversaryImage.objects.filter(
        adversary=OuterRef("adversary"), pk__gt=OuterRef("pk"), state=AdversaryImage.State.DONE
    )
    checked_images = AdversaryImage.objects.filter(state=AdversaryImage.State.DONE)
    return checked_images.filter(~Exists(newer_images), allowed_at=None)


class RunOutcome(NamedTuple):
    """What people decided about the examples of a run."""

    confirmed: int
    refuted: int
    waiting: int


def count_run_outcome(run: AdversaryRun | None) -> RunOutcome | None:
    """Return what people decided about a run's examples that fooled the models; None for no run.

    Numbers only, because whoever brought a program may not read labels. One query.
    """
    if run is None:
        return None
    catch, fooled = build_measure_condition("catches"), build_measure_condition("fooled")
    is_decided = Q(consensus__state__in=JUDGED_EXAMPLE_STATES)
    counts = Example.objects.filter(
        catch | fooled,
        pk__in=run.logged_tries.filter(example__isnull=False).values("example"),
        **STANDING_CONDITIONS,
    ).aggregate(
        confirmed=Count("pk", filter=catch & is_decided),
        decided=Count("pk", filter=is_decided),
        all=Count("pk"),
    )
    return RunOutcome(
        counts["confirmed"],
        counts["decided"] - counts["confirmed"],
        counts["all"] - counts["decided"],
    )


def list_contexts_to_read(run: AdversaryRun) -> list[Context]:
    """Return texts of a run's round that its questions can be about, at most MAX_CONTEXTS.

    Empty if the models don't read them. Which ones depends on the run.
    """
    if not reads_context(run.round.task.config):
        return []
    contexts = list(Context.objects.filter(round=run.round, is_retired=False).order_by("pk"))
    # By the seed, so that a program that is run again gets the same ones.
    rng = Random(f"{run.adversary.seed} {run.number}")
    return rng.sample(contexts, min(MAX_CONTEXTS, len(contexts)))


def describe_budget(run: AdversaryRun | None) -> list[BudgetLine]:
    """Return the limits of a run with what it has used; empty for None."""
    if run is None:
        return []
    return [
        BudgetLine(_("Model calls"), run.calls, run.max_calls),
        BudgetLine(_("Examples"), run.examples, run.max_examples),
        BudgetLine(_("Minutes"), round(run.seconds / 60, 1), run.max_minutes),
        BudgetLine(_("Tokens"), run.tokens, run.max_tokens),
        BudgetLine(_("Cost"), round(run.cost, 4), run.max_cost),
    ]


def hash_question(label: str, model_inputs: Mapping[str, Any]) -> str:
    """Return the digest of what the models read, with the label that counts as right."""
    question = json.dumps([label, model_inputs], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(question.encode()).hexdigest()
