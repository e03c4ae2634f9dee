"""The export of everything stored about a person, as one JSON object written piece by piece."""

import json
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from operator import itemgetter
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F, Q

from annotation.attempts.conversation_services import list_spoken_turns
from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    GatePass,
    Report,
    ShownExample,
    Suggestion,
    TargetOutput,
)
from core.accounts.models import (
    AddressMark,
    Annotator,
    ApiToken,
    LogEntry,
    SpentQuota,
    User,
)
from dynabench.campaigns.models import Invited, LedgerRow, Place, Qualification
from dynabench.catches.models import SharedCatch
from dynabench.communities.models import Community, CommunityProposal, JointSubmission, Post
from dynabench.notices.models import Digest
from dynabench.studies.models import StudyDraft, StudyDraw
from dynabench.webhooks.models import Webhook
from evaluation.models import HandedAnswers, OwnWorker, Submission, TeamMember, Upload
from leaderboard.arena.battles.release import iter_own_battles
from leaderboard.models import Follow, ReleaseConsent, WeeklyGoal, Weights
from tasks.models import BlindJudging, Duty, Media, TaskDraft, TaskMember, TaskProposal
from validation.models import (
    Comment,
    GoldAnswer,
    JudgeLease,
    Mention,
    OwnerDecision,
    Skip,
    Validation,
)
from validation.rewards.scores import compute_points

CHUNK_ROWS = 200
MODEL_FIELDS = (
    "id", "name", "kind", "source", "revision", "state", "outcome", "queued_at", "withdrawn_at",
    "description", "languages", "trained_until", "license", "paper_url", "parameters",
    "is_published", "publish_on", "anonymous_until", "chat", "base", "gpus",
)  # fmt: skip
Section = Mapping[str, Any] | Iterable[Mapping[str, Any]]


def export_person(user: User, annotator: Annotator) -> Iterator[str]:
    """Yield the JSON text of a person's data in pieces, so that memory use stays bounded.

    Other people's texts and individual answers are left out.
    """
    separator = "{"
    for name, section in {**_export_account(user), **_export_work(annotator)}.items():
        yield f"{separator}\n{json.dumps(name)}: "
        if isinstance(section, Mapping):
            yield _encode_json(section)
        else:
            yield from _encode_list(section)
        separator = ","
    yield "\n}\n"


def _encode_json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def _encode_list(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator + _encode_json(row)
        separator = ",\n"
    if separator == "[\n":  # no row came
        yield "[]"
    else:
        yield "\n]"


def _export_sign_in(user: User) -> dict[str, Section]:
    """Return the person's sign-in methods and sessions."""
    # Hashes of addresses belong to a person, who may have had several accounts.
    same_person = {"person__accounts__user": user}
    return {
        "email_addresses": EmailAddress.objects.filter(user=user).values("email", "verified"),
        "address_hashes": AddressMark.objects.filter(**same_person).values("digest", "marked_at"),
        "quotas_of_deleted_accounts": SpentQuota.objects.filter(**same_person).values(
            "quota", "number", "day"
        ),
        "sessions": UserSession.objects.filter(user=user).values(
            "ip", "user_agent", "created_at", "last_seen_at"
        ),
        "told_by_provider": SocialAccount.objects.filter(user=user).values(
            "uid", "extra_data", "date_joined", "last_login"
        ),
        "sign_in_means": Authenticator.objects.filter(user=user).values(
            "type", "created_at", "last_used_at"
        ),
    }


def _export_account(user: User) -> dict[str, Section]:
    """Return the person's account, without secrets, and the rows that belong to it."""
    names = ("email", "language", "date_joined", "last_login", "is_superuser", "is_active")
    owner_decisions = OwnerDecision.objects.filter(owner=user)
    return {
        "account": {name: getattr(user, name) for name in names},
        **_export_sign_in(user),
        "roles": TaskMember.objects.filter(user=user).values("role", task_code=F("task__code")),
        "duties": Duty.objects.filter(person=user).values(
            *("kind", "amount", "share", "overlap", "due_on", "set_at", "ended_at"),
            task_code=F("task__code"),
        ),
        "judging_blind": BlindJudging.objects.filter(annotator__user=user).values(
            "began_at", "ended_at", task_code=F("task__code")
        ),
        "proposals": TaskProposal.objects.filter(proposer=user).values(
            *("name", "wanted_code", "source", "goal", "people", "state", "reason"),
            *("created_at", "decided_at"),
        ),
        **_export_communities(user),
        "drafts": TaskDraft.objects.filter(owner=user).values(
            "name", "text", "created_at", "changed_at", task_code=F("task__code")
        ),
        "study_drafts": StudyDraft.objects.filter(owner=user).values(
            "code", "values", "plan_text", "cases_name", "made_at", "changed_at"
        ),
        **_export_models(user),
        "weights": Weights.objects.filter(owner=user).values(
            *("name", "description", "metrics", "evaluation_sets", "made_at"),
            task_code=F("task__code"),
        ),
        "invitations": Invited.objects.filter(user=user).values(
            "made_at", study=F("campaign__name")
        ),
        "follows": Follow.objects.filter(user=user).values("told_to", task_code=F("task__code")),
        "digests": Digest.objects.filter(user=user).values(
            "told_at", "is_off", "off", "is_weekly", "weekly_at", "caught_at"
        ),
        "tokens": ApiToken.objects.filter(user=user).values(
            "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at"
        ),
        "webhooks": Webhook.objects.filter(user=user).values(
            "url", "events", "created_at", "on_since", task_code=F("task__code")
        ),
        # Without targets and data, which name other people.
        "actions": LogEntry.objects.filter(actor=user).values("action", "created_at").iterator(),
        "decisions": owner_decisions.values(
            *("label", "verdict", "reason", "created_at", "withdrawn_at"),
            example_uuid=F("example__uuid"),
        ).iterator(),
    }


def _export_models(user: User) -> dict[str, Section]:
    """Return the person's submissions and teams, and what their own workers evaluated."""
    return {
        "models": Submission.objects.filter(owner=user).values(
            *MODEL_FIELDS, task_code=F("task__code"), team_name=F("team__name")
        ),
        "own_workers": OwnWorker.objects.filter(user=user).values(
            *("task__code", "submission_id", "second", "takes_sealed", "made_at", "heard_at")
        ),
        "own_workers_answers": HandedAnswers.objects.filter(user=user).values(
            *("run_id", "token", "runner", "is_second", "compared", "differed", "handed_at")
        ),
        "teams": TeamMember.objects.filter(user=user).values(
            "address", "is_owner", "joined_at", team_name=F("team__name")
        ),
        "uploads": Upload.objects.filter(owner=user).values("file_name", "size", "begun_at"),
    }


def _export_communities(user: User) -> dict[str, Section]:
    """Return the communities that the person owns or proposed, their news and joint submissions."""
    return {
        "communities": Community.objects.filter(owners=user).values("slug", "name"),
        "community_proposals": CommunityProposal.objects.filter(proposer=user).values(
            "name", "slug", "goal", "state", "reason", "created_at", "decided_at"
        ),
        "community_news": Post.objects.filter(author=user).values(
            "title", "text", "posted_at", community_slug=F("community__slug")
        ),
        "joint_submissions": JointSubmission.objects.filter(owner=user).values(
            "name", "track", "made_at", community_slug=F("community__slug")
        ),
    }


def _export_conversations(annotator: Annotator) -> Iterator[Mapping[str, Any]]:
    """Yield the conversations that have not become examples, without the models' secrets."""
    rows = Conversation.objects.filter(assignment__annotator=annotator)
    for conversation in rows.select_related("assignment__round__task").iterator():
        code = conversation.assignment.round.task.code
        yield {
            "task_code": code,
            "turns": list_spoken_turns(conversation.turns),
            "said": conversation.said,
        }


def _export_studies(annotator: Annotator) -> dict[str, Section]:
    """Return the person's participation, test results and pay in campaigns.

    Panel ids are left out.
    """
    return {
        "studies": Place.objects.filter(annotator=annotator).values(
            *("state", "consented_at", "began_at", "submitted_at", "ran_out_at"),
            *("reason", "answers", "about"),
            study=F("campaign__name"),
            consent_version=F("consent__number"),
        ),
        "arms": StudyDraw.objects.filter(
            Q(annotator=annotator) | Q(place__annotator=annotator)
        ).values("probability", "drawn_at", arm_name=F("arm__name"), study=F("arm__study__code")),
        "tests": Qualification.objects.filter(annotator=annotator).values(
            "tries", "right", "asked", "tried_at", "passed_at", task_code=F("task__code")
        ),
        "pay": LedgerRow.objects.filter(place__annotator=annotator).values(
            *("kind", "amount", "currency", "cause", "made_at"), study=F("place__campaign__name")
        ),
    }


def _export_work(annotator: Annotator) -> dict[str, Section]:
    """Return what the person wrote and judged under their pseudonym."""
    names = ("pseudonym", "source", "keyboard_mode", "in_ranking", "created_at")
    example_column, task_column = (
        {"example_uuid": F("example__uuid")},
        {"task_code": F("round__task__code")},
    )
    return {
        "annotator": {name: getattr(annotator, name) for name in names},
        "consents": GatePass.objects.filter(annotator=annotator).values(
            *("passed_at", "own_minutes", "own_items", "day", "seconds", "in_a_row"),
            task_code=F("task__code"),
        ),
        **_export_studies(annotator),
        "publication": ReleaseConsent.objects.filter(voter=annotator).values(
            "version", "agrees", "given_at", task_code=F("task__code")
        ),
        "battles": iter_own_battles(annotator.pk),
        "shared_catches": SharedCatch.objects.filter(annotator=annotator).values(
            "shared_at", **example_column
        ),
        "weekly_goals": WeeklyGoal.objects.filter(annotator=annotator).values("week", "amount"),
        "assignments": Assignment.objects.filter(annotator=annotator)
        .values(
            *("goal", "challenge", "draft", "draft_saved_at", "assigned_at", "left_at"),
            *("context_probability", "context_choices"),
            **task_column,
        )
        .iterator(),
        "conversations": _export_conversations(annotator),
        "files": Media.objects.filter(sent_by=annotator).values(
            "digest", "mime", "size", task_code=F("task__code")
        ),
        "suggestions": Suggestion.objects.filter(assignment__annotator=annotator)
        .values(
            "text", "source", "action", "asked_at", task_code=F("assignment__round__task__code")
        )
        .iterator(),
        "attempts": Attempt.objects.filter(annotator=annotator)
        .values("uuid", "inputs", "challenge", "support", "typing", "state", "failure", "asked_at")
        .iterator(),
        "examples": _export_examples(annotator),
        "judgements": _export_judgements(annotator),
        # Which examples the person was given to judge.
        "handed_out": JudgeLease.objects.filter(validator=annotator)
        .values("leased_at", **example_column)
        .iterator(),
        "skips": Skip.objects.filter(validator=annotator)
        .values("created_at", **example_column)
        .iterator(),
        "shown": ShownExample.objects.filter(annotator=annotator)
        .values("way", "shown_at", **example_column)
        .iterator(),
        "comments": Comment.objects.filter(author=annotator).values(
            "text", "created_at", "edited_at", "removed_at", **example_column
        ),
        "mentions": Mention.objects.filter(person=annotator).values(
            "created_at", "seen_at", example_uuid=F("comment__example__uuid")
        ),
        "reports": Report.objects.filter(annotator=annotator).values(
            "context", "reason", "comment", "created_at", "resolved_at"
        ),
    }


def _export_judgements(annotator: Annotator) -> Iterator[dict[str, Any]]:
    """Yield the person's judgements, oldest first.

    Answers to gold items are not marked as such.
    """
    names = ("label", "verdict", "judgements", "flag_reason", "comment", "reveal", "reveal_choice")
    other_names = ("reveal_comment", "metadata", "seconds", "words", "created_at", "by_program")

    def select_answers(rows: Any, example: str) -> Any:
        paths = {
            "example_uuid": F(f"{example}__uuid"),
            "task_code": F(f"{example}__round__task__code"),
        }
        # `merge` below needs both kinds of answers in the order of their time.
        return (
            rows.filter(validator=annotator)
            .order_by("created_at")
            .values(*names, *other_names, **paths)
            .iterator()
        )

    votes = select_answers(Validation.objects, "example")
    # Merged by time: apart they would tell which items were gold.
    return merge(
        votes, select_answers(GoldAnswer.objects, "gold__example"), key=itemgetter("created_at")
    )


def _export_examples(annotator: Annotator) -> Iterator[dict[str, Any]]:
    """Yield the person's examples, oldest first, a few hundred per query."""
    own_examples = Example.objects.filter(annotator=annotator).order_by("pk")
    own_examples = own_examples.select_related("round__task", "context", "consensus", "parent")
    own_examples = own_examples.prefetch_related("target_outputs__target")
    last_id = 0
    while True:
        # By the last id and not by `iterator`: points are counted for some at a time.
        chunk = list(own_examples.filter(pk__gt=last_id)[:CHUNK_ROWS])
        if not chunk:
            return
        points = compute_points(annotator, chunk)
        for example in chunk:
            yield _describe_example(example, points.get(example.pk))
        last_id = chunk[-1].pk


def _describe_example(example: Example, points: float | None) -> dict[str, Any]:
    parent, consensus = example.parent, getattr(example, "consensus", None)
    names = (
        "uuid", "goal", "inputs", "challenge", "support", "metadata", "typing", "signs",
        "by_program", "outcome", "decided_by", "shown_at", "created_at", "retracted_at",
        "context_probability", "context_choices",
    )  # fmt: skip
    own_values = {name: getattr(example, name) for name in names}
    # Whose example it was edited from is other people's business.
    edited_from = None
    if parent and parent.annotator_id == example.annotator_id:
        edited_from = parent.uuid
    consensus_values = None
    if consensus:
        columns = (
            *("state", "votes", "label", "verdict", "judgements", "score"),
            *("is_verified", "is_validated_error"),
        )
        consensus_values = {name: getattr(consensus, name) for name in columns}
    return {
        **own_values,
        "task_code": example.round.task.code,
        "round": example.round.number,
        "context": example.context.fields,
        "edits": edited_from,
        "answers": [_describe_answer(example, output) for output in example.target_outputs.all()],
        "judged": consensus_values,
        "points": points,
    }


def _describe_answer(example: Example, output: TargetOutput) -> dict[str, Any]:
    """Return a target's answer, with only as much as the task shows to authors."""
    prob = None
    if example.round.task.config.limits.show_confidence == "full":
        prob = output.prob
    return {
        "model": example.round.get_target_name(output.target, output.position),
        "output": output.output,
        "prob": prob,
        "fooled": output.fooled,
        "score": output.score,
        "judgements": output.judgements,
    }
