"""A task in which there is something at every address of the API, for tests that walk them all."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.core.files.base import ContentFile
from django.utils import timezone

from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example, Report
from core.accounts.models import ApiToken, User, confirm_address
from core.accounts.services import get_annotator
from core.accounts.tokens import create_token
from dynabench.adversaries.models import AdversaryImage, AdversaryRun
from dynabench.adversaries.services import create_adversary
from dynabench.communities.models import Community, CommunityProposal, CommunityTask, Post
from dynabench.studies.models import Study
from dynabench.studies.rules.plan import compute_plan_hash
from dynabench.webhooks.models import Delivery
from dynabench.webhooks.services import create_webhook
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.isolation.uploads.chunked import begin_upload
from evaluation.jobs import build_dataset
from evaluation.models import OwnWorker, TrainingRun
from evaluation.submissions.own_workers.selectors import make_host_name
from evaluation.submissions.teams.services import invite_member, make_team
from leaderboard.models import Weights
from leaderboard.snapshots.services import take_snapshot
from tasks.members.assignments.services import set_assignments
from tasks.members.invitation_services import create_invitation_link
from tasks.models import ContextBatch, Round, Task, TaskMember
from tasks.services import OFFICIAL_FOLDER
from tests.support import media
from tests.support.adversaries import options_of
from tests.support.boards import fill_board, measured
from tests.support.campaigns import open_campaign
from tests.support.evaluations import accepted_model
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.judging import answered, write
from tests.support.studies import PLAN
from tests.support.training_pages import REPORT
from validation.decisions.consensus_rows import derive_consensus_of_all

CONFIG = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text() + "\nprograms: {judge: true}\n"
SCOPES = [scope.value for scope in ApiToken.Scope]


@dataclass(frozen=True)
class World:
    """Its people, and what there is, by the part of an address before it."""

    owner: User
    other: User
    admin: User
    task: Task
    ids: dict[str, list[Any]]
    team_members: list[Any]

    def known(self, parts: Sequence[str], place: int) -> list[Any]:
        """The ids of what may stand at this place of an address; empty: none is known."""
        before = parts[place - 1]
        if before == "members" and "teams" in parts:
            return self.team_members
        if before == "catches":
            return self.ids["examples"]
        of_task = before == "invitations" and parts[0] == "tasks"
        return self.ids.get("task-invitations" if of_task else before, [])


def make_world() -> World:
    """Build it. The task's owner also owns the models, the examples and the small things."""
    owner, other = UserFactory(email="owner@example.com"), UserFactory(email="other@example.com")
    admin = UserFactory(email="admin@example.com", is_superuser=True)
    task = TaskFactory(code="nli", name="NLI", config_text=CONFIG)
    TaskMember.objects.create(task=task, user=owner, role="owner")
    reader = UserFactory(email="reader@example.com")
    member = TaskMember.objects.create(task=task, user=reader, role="viewer")
    link, _url = create_invitation_link(task=task, actor=owner, role="judge", most=2, days=1)
    (assignment,) = set_assignments(task=task, actor=owner, kind="write", people=[], amount=50)
    for number in (1, 2):
        task.config_versions.create(number=number, text=CONFIG, actor=owner)
    Task.objects.filter(pk=task.pk).update(config_number=2)
    community = Community.objects.create(slug="words", name="Words", is_listed=True)
    community.owners.add(other)
    entry = CommunityTask.objects.create(community=community, task=task, state="in")
    post = Post.objects.create(community=community, title="New", text="We are here.")
    proposal = CommunityProposal.objects.create(proposer=other, name="B", slug="b", goal="To be.")
    teams, team_members = _teams(owner, other)
    ids = {
        "members": [member.pk],
        "duties": [assignment.pk],
        "versions": [1],
        "owners": [other.pk],
        "entries": [entry.pk],
        "news": [post.pk],
        "proposals": [proposal.pk],
        "acts": ["0" * 32],
        "task-invitations": [link.pk],
        "campaigns": [open_campaign(task).slug],
        "studies": [_freeze_plan(task).code],
        **teams,
        **_rounds(task, owner, other),
        **_adversaries(task, owner),
        **_models(task, owner),
    }
    return World(owner, other, admin, task, ids, team_members)


def _freeze_plan(task: Task) -> Study:
    """A frozen study, whose first arm is the task's first campaign."""
    study = Study.objects.create(
        task=task, code="study", plan_text=PLAN, state=Study.State.FROZEN,
        plan_hash=compute_plan_hash(PLAN), frozen_at=timezone.now(),
    )  # fmt: skip
    campaigns = (task.campaigns.get(), open_campaign(task, slug="second-arm"))
    for position, (name, campaign) in enumerate(zip(("alone", "helped"), campaigns, strict=True)):
        study.arms.create(name=name, campaign=campaign, position=position)
    return study


def _adversaries(task: Task, owner: User) -> dict[str, list[Any]]:
    """Adversaries of the owner's: one asks about every premise, one is a program that attacks."""
    options = options_of("rules", templates="contradiction | It is false that {premise}")
    rules = create_adversary(task=task, actor=owner, kind="rules", options=options, name="Denials")
    program = create_adversary(
        task=task, actor=owner, kind="program", options=options_of("program"), name="Program"
    )
    run = AdversaryRun.objects.create(
        adversary=program,
        round=task.rounds.get(number=2),
        number=1,
        state="running",
        lease_token=uuid4(),
        lease_until=timezone.now() + timedelta(minutes=9),
        started_at=timezone.now(),
    )
    # Of the first adversary, as the addresses name it.
    image = AdversaryImage.objects.create(adversary=rules, number=1, state="done")
    return {
        "adversaries": [rules.pk],
        "attacks": [run.lease_token],
        "images": [image.number],
    }


def _teams(owner: User, other: User) -> tuple[dict[str, list[Any]], list[Any]]:
    """The owner's team with the address of somebody else, and an invitation by another person.

    The members of the team come last.
    """
    team = make_team(actor=owner, name="Owner's team")
    invited = invite_member(team=team, actor=owner, email="somebody@example.com")
    confirm_address(owner)
    asked = invite_member(
        team=make_team(actor=other, name="Others"), actor=other, email=owner.email
    )
    return {"teams": [team.pk], "invitations": [asked.pk]}, [invited.pk]


def _rounds(task: Task, owner: User, other: User) -> dict[str, list[Any]]:
    released = RoundFactory(task=task, number=1, state="closed")
    _examples(released, other, 12, outcome="not_fooled")
    dataset = request_release(round=released, options=Options(), actor=None)
    build_dataset(dataset.pk)
    live = RoundFactory(task=task, number=2)
    contexts = ContextFactory.create_batch(3, round=live)
    target = scripted_target(live, label="entailment", prob=None)
    batch = ContextBatch.objects.create(round=live, file_name="more.jsonl")
    examples = [*_examples(live, other, 3), *_examples(live, owner, 2)]
    assignment = assign(annotator=get_annotator(owner), round=live)
    attempt = _attempt(assignment)
    contexts.sort(key=lambda context: context != assignment.context)  # the owner's comes first
    report = Report.objects.create(
        annotator=get_annotator(other), context=contexts[0], reason="broken"
    )
    training = TrainingRun.objects.create(
        task=task, options={"weights": {"round1": 1}}, state="done", report=REPORT
    )
    return {
        "tasks": [task.code],
        "media": [media.stored(task, "image")["digest"]],
        "communities": ["words"],
        "rounds": [2, 1],
        "contexts": [context.pk for context in contexts],
        "context-batches": [batch.pk],
        "target-models": [target.pk],
        "datasets": [dataset.version],
        "files": [file.name for file in dataset.files.all()],
        "assignments": [assignment.pk],
        "attempts": [attempt.uuid],
        "trainings": [training.pk],
        "examples": [example.uuid for example in examples],
        "reports": [report.pk],
    }


def _examples(round: Round, author: User, size: int, outcome: str = "fooled") -> list[Example]:
    """Examples of which others have decided nothing yet; each was shown to a target."""
    if not round.contexts.exists():
        ContextFactory(round=round)
    made = [
        write(
            *(round, author, f"{author.pk}-{number}", outcome),
            hypothesis=f"By {author.pk}: {number}.",
            label="neutral",
        )
        for number in range(size)
    ]
    answered(made[0])
    round.targets.update(options={"label": "entailment", "prob": None})
    derive_consensus_of_all(made)
    return made


def _attempt(assignment: Assignment) -> Attempt:
    """One that failed."""
    return Attempt.objects.create(
        annotator=assignment.annotator,
        assignment=assignment,
        key="0" * 32,
        inputs={"hypothesis": "It failed.", "label": "neutral"},
        state=Attempt.State.FAILED,
        failure="slow",
        asked_at=timezone.now(),
    )


def _models(task: Task, owner: User) -> dict[str, list[Any]]:
    first, *_ = fill_board(task)
    task.evaluation_sets.update(may_leave=True)
    version = task.evaluation_sets.first().versions.last()
    mine = measured(accepted_model(task, owner, name="mine"), version, 0.7)
    plain = mine.runs.get(suite="plain")
    answers = [
        {"uid": f"u{number}", "answer": "neutral", "prob": None} for number in range(version.size)
    ]
    said = "\n".join(map(json.dumps, answers)).encode()
    plain.predictions.save("p", ContentFile(gzip.compress(said)))
    Weights.objects.create(task=task, name="speed-first", owner=owner, metrics={"accuracy": 1})
    snapshot = take_snapshot(task=task, actor=owner, title="First")
    upload = begin_upload(owner, "model.zip", 1000)
    hook, _ = create_webhook(user=owner, url="https://a.test/", events=["round.closed"])
    now = timezone.now()
    delivery = Delivery.objects.create(
        webhook=hook, event="webhook.test", key="k", data={}, happened_at=now, due_at=now
    )
    worker = OwnWorker.objects.create(task=task, user=owner, takes_sealed=True)
    mine.file.save("model.tar", ContentFile(b"weights"))
    lease = {"state": "running", "lease_token": uuid4(), "lease_until": now, "attempts": 1}
    held = mine.runs.create(version=version, number=9, host=make_host_name(owner, ""), **lease)
    short = mine.short_evaluations.create(
        version=version, state="queued", half_width=0.1, most_questions=40, seed=1
    )
    token, _ = create_token(user=owner, name="spare", scopes=["read"], days=9)
    return {
        "models": [mine.pk, first.pk],
        "runs": [plain.pk],
        "short-evaluations": [short.pk],
        "evaluation-sets": [version.evaluation_set.name],
        "predictions": [version.evaluation_set.name],
        "evidence": [version.evaluation_set.name],
        "forks": ["speed-first"],
        "snapshots": [snapshot.number],
        "uploads": [upload.pk],
        "webhooks": [hook.pk],
        "deliveries": [delivery.pk],
        "tokens": [token.pk],
        "own-workers": [worker.pk],
        "leases": [held.lease_token],
    }
