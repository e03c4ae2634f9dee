"""The descriptions of actions on the page of a task's log."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

LOG_AREAS: dict[str, tuple[Promise, tuple[str, ...]]] = {
    "rounds": (_("Rounds and texts"), ("round", "contexts", "examples", "dataset")),
    "judging": (
        _("Judging"),
        ("consensus", "policy", "gold", "example", "votes", "blind", "comment", "reports", "tag"),
    ),
    "models": (
        _("Models and scores"),
        (
            *("target", "generator", "training", "evaluation_set", "metric", "llm_judge", "board"),
            *("own_worker", "paraphrases", "allowance", "snapshot"),
            *("contestant", "comparisons", "conversation", "gold_pair", "arena_judge"),
            "adversary",
        ),
    ),
    "people": (_("Members and campaigns"), ("member", "invitation", "duty", "campaign")),
    "task": (_("Task"), ("task", "proposal", "demo", "community")),
}
"""Areas of the log by their name in the URL: the title, and the first parts of their actions."""

ACTION_WORDS: dict[str, Promise] = {
    "adversary.made": _("Created an adversary"),
    "adversary.retired": _("Retired an adversary"),
    "adversary.scheduled": _("Changed an adversary’s schedule"),
    "adversary.started": _("Started an adversary"),
    "adversary.stopped": _("Stopped an adversary"),
    "allowance.changed": _("Changed the submission limit"),
    "arena_judge.asked": _("Ran an LLM judge"),
    "arena_judge.hidden": _("Removed an LLM judge from the leaderboard"),
    "arena_judge.made": _("Added an LLM judge"),
    "arena_judge.shown": _("Added an LLM judge to the leaderboard"),
    "blind.began": _("Started judging blind"),
    "blind.ended": _("Stopped judging blind"),
    "board.anchors_measured": _("Measured the reference models"),
    "board.frozen": _("Froze the exchange rates"),
    "campaign.appeal-answered": _("Answered an appeal"),
    "campaign.bonuses-planned": _("Planned bonuses"),
    "campaign.changed": _("Changed a campaign"),
    "campaign.closed": _("Closed a campaign"),
    "campaign.judge-paused": _("Paused a judge"),
    "campaign.made": _("Created a campaign"),
    "campaign.open": _("Opened a campaign"),
    "campaign.paid": _("Marked payments as paid"),
    "campaign.paused": _("Paused a campaign"),
    "campaign.payment-resolved": _("Resolved a payment"),
    "comment.kept": _("Kept a reported comment"),
    "comment.removed": _("Removed a comment"),
    "community.task_in": _("Joined a community"),
    "community.task_out": _("Left a community"),
    "comparisons.imported": _("Imported comparisons"),
    "consensus.overridden": _("Decided an example"),
    "consensus.override_withdrawn": _("Withdrew a decision"),
    "contestant.entered": _("Added a model to battles"),
    "contestant.left": _("Removed a model from battles"),
    "contexts.imported": _("Imported texts"),
    "contexts.restored": _("Restored texts"),
    "contexts.retired": _("Retired texts"),
    "contexts.undone": _("Undid an import of texts"),
    "dataset.published": _("Published a dataset elsewhere"),
    "dataset.released": _("Released a dataset"),
    "dataset.undone": _("Undid a release"),
    "demo.forgotten": _("Deleted the demo"),
    "demo.requested": _("Started the demo"),
    "demo.stopped": _("Stopped the demo"),
    "duty.changed": _("Changed an assignment"),
    "duty.ended": _("Ended an assignment"),
    "duty.set": _("Created an assignment"),
    "evaluation_set.changed": _("Changed a test set"),
    "evaluation_set.created": _("Created a test set"),
    "evaluation_set.exposed": _("Made the labels of a test set public"),
    "evaluation_set.taken": _("Imported a test set"),
    "evaluation_set.version": _("Added a version of a test set"),
    "example.withdrawn": _("Withdrew an example"),
    "examples.imported": _("Imported examples"),
    "generator.changed": _("Changed the suggestion model"),
    "generator.registered": _("Added the suggestion model"),
    "generator.removed": _("Removed the suggestion model"),
    "gold.explained": _("Explained a gold item"),
    "gold.marked": _("Marked a gold item"),
    "gold.unmarked": _("Removed a gold item"),
    "gold_pair.made": _("Created a gold pair"),
    "gold_pair.off": _("Turned a gold pair off"),
    "gold_pair.on": _("Turned a gold pair on"),
    "invitation.made": _("Created invitations"),
    "invitation.revoked": _("Revoked an invitation"),
    "llm_judge.asked": _("Ran an LLM judge"),
    "llm_judge.made": _("Added an LLM judge"),
    "member.added": _("Added a member"),
    "member.changed": _("Changed a member’s role"),
    "member.joined": _("Joined by invitation"),
    "member.removed": _("Removed a member"),
    "metric.approved": _("Approved a metric"),
    "metric.declined": _("Declined a metric"),
    "metric.proposed": _("Proposed a metric"),
    "metric.retired": _("Retired a metric"),
    "metric.run_again": _("Ran a metric again"),
    "own_worker.added": _("Added a runner"),
    "own_worker.removed": _("Removed a runner"),
    "paraphrases.asked": _("Requested paraphrases"),
    "paraphrases.checked": _("Checked paraphrases"),
    "policy.changed": _("Changed the decision rule"),
    "proposal.approved": _("Approved the task"),
    "proposal.declined": _("Declined the task"),
    "proposal.made": _("Requested approval"),
    "proposal.withdrawn": _("Withdrew the request for approval"),
    "reports.resolved": _("Resolved reports"),
    "round.changed": _("Changed a round’s plan"),
    "round.closed": _("Closed a round"),
    "round.created": _("Planned a round"),
    "round.deleted": _("Deleted a round"),
    "round.open": _("Opened a round"),
    "round.opening_ended": _("Cancelled the opening of a round"),
    "round.opening_requested": _("Requested to open a round"),
    "round.paused": _("Paused a round"),
    "round.ready": _("Marked a round as ready"),
    "round.release_undone": _("Undid the release of a round"),
    "round.released": _("Released a round"),
    "round.target_replaced": _("Replaced a model to fool"),
    "snapshot.taken": _("Took a snapshot"),
    "tag.added": _("Tagged examples"),
    "tag.removed": _("Removed a tag"),
    "target.changed": _("Changed a model to fool"),
    "target.deleted": _("Deleted a model to fool"),
    "target.registered": _("Added a model to fool"),
    "task.changed": _("Changed the task"),
    "task.created": _("Created the task"),
    "training.requested": _("Requested a training run"),
    "votes.taken-back": _("Withdrew votes"),
}
"""The description of each action."""


def describe_action(action: str) -> str:
    """Return the action's description, or its code if this release has no description for it."""
    words = ACTION_WORDS.get(action)
    if words is None:
        return action
    return str(words)


def list_action_kinds(area: str) -> tuple[str, ...]:
    """Return the first parts of the actions that belong to an area."""
    _title, kinds = LOG_AREAS[area]
    return kinds
