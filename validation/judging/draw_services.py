"""Writes of the draw that decides which examples people judge. Locks: docs/locking.md."""

from collections.abc import Mapping
from dataclasses import asdict

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from tasks.config.judging_checks import has_comparable_labels
from tasks.config.schema import TaskConfig
from tasks.models import Round, TargetModel
from tasks.targets.sample_judges import INSTRUCTED_ADAPTER, list_possible_judges
from validation.consensus.vote_draws import DrawRule, JudgeAnswer, draw_for_people
from validation.decisions.consensus_rows import build_configured_draw, get_round_policy
from validation.decisions.services import RoundReleased
from validation.models import JudgeLease, QueueItem, RoundPolicy, Validation, VoteDraw

CHUNK_ITEMS = 500


class DrawRefused(Refused):
    """Raised when a round can't draw what people judge."""

    code = "vote_draw"


def find_draw_obstacle(config: TaskConfig) -> str:
    """Return why a task can't draw what people judge, or "" if it can."""
    if config.kind == "arena":
        return _(
            "Arenas can't use a judge model for a sample, because people choose the battles that "
            "they vote on."
        )
    if config.verdict.type == "decide":
        return _("The answer key decides about every example, so people don't judge.")
    return ""


def change_draw(*, round: Round, owner: User, rule: DrawRule | None) -> None:
    """Set the rule by which people are asked about a sample; None asks about every new example.

    Draws that were made stay. When a rule is set, examples in the queue that nobody has judged or
    leased leave it until they are drawn. Locks the round's policy, then queue items. Raises
    RoundReleased and DrawRefused.
    """
    if round.state == Round.State.RELEASED:
        raise RoundReleased(_("This round is released, so its votes are complete."))
    if rule is not None:
        if obstacle := find_draw_obstacle(round.task.config):
            raise DrawRefused(obstacle)
        _check_judge(round, rule)
    # Creates the row that is locked below, if the round has none yet.
    get_round_policy(round)
    with transaction.atomic():
        policy_row = RoundPolicy.objects.select_for_update(of=("self",)).get(round=round)
        _store_rule(policy_row, round, rule)
        log(owner, "votes.draw_changed", round, **(policy_row.draw or {}))


def settle_draw(*, round: Round) -> None:
    """Give a round that has opened the sample of its task's file, unless its rule is settled.

    Its policy may have been stored before it opened, for another reason than a sample: when rows
    were imported, or when its owner changed how votes decide. Takes the locks of `change_draw`.
    """
    rule = build_configured_draw(round)
    # Somebody deleted the judge model since the round opened. It may come back.
    if rule is None and round.task.config.validation.sample is not None:
        return
    get_round_policy(round)
    with transaction.atomic():
        policy_row = RoundPolicy.objects.select_for_update(of=("self",)).get(round=round)
        # An owner was faster, and owners' choices hold, also that of no sample.
        if policy_row.is_draw_settled:
            return
        # Without a sample in the file, a rule that the round has already stays.
        _store_rule(policy_row, round, rule or policy_row.draw_rule)


def _store_rule(policy_row: RoundPolicy, round: Round, rule: DrawRule | None) -> None:
    """Store the settled rule of a locked policy. With a rule, examples leave the queue."""
    if rule is not None:
        first_id = _take_out_of_queue(round)
        # The queue considers again what was taken out.
        if first_id is not None:
            policy_row.filled_to = min(policy_row.filled_to, first_id - 1)
    policy_row.draw = asdict(rule) if rule else None
    policy_row.is_draw_settled = True
    # Another judge may answer, so it gets its own hour.
    policy_row.judge_down_since = None
    policy_row.save(update_fields=["draw", "filled_to", "judge_down_since", "is_draw_settled"])


def _check_judge(round: Round, rule: DrawRule) -> None:
    """Raise DrawRefused if the rule's model can't judge the round in the rule's way."""
    judges = {target.pk: target for target in list_possible_judges(round)}
    judge = judges.get(rule.judge)
    if judge is None:
        raise DrawRefused(_("Choose one of the task's models that authors don't try to fool."))
    # Only chat models read an instruction. Others answer the task's question alone.
    if rule.prompt is not None and judge.adapter != INSTRUCTED_ADAPTER:
        raise DrawRefused(_("Only chat models (openai_chat) can judge by an instruction."))
    if rule.prompt is None and not has_comparable_labels(round.task.config):
        raise DrawRefused(_("Authors of this task choose no label, so enter an instruction."))


def _take_out_of_queue(round: Round) -> int | None:
    """Delete the queue items that nobody has judged or leased; return the first example's id."""
    first_id, last_id = None, 0
    # Other examples are in a random share already, or were requested by the owner.
    items = QueueItem.objects.filter(round=round).exclude(
        example__outcome=Example.Outcome.NOT_FOOLED
    )
    while True:
        # Skips what somebody is leasing at this moment: people are asked about it for certain.
        locked_items = items.filter(pk__gt=last_id).select_for_update(
            of=("self",), skip_locked=True
        )
        ids = list(locked_items.order_by("pk").values_list("pk", flat=True)[:CHUNK_ITEMS])
        if not ids:
            return first_id
        # Asked after the lock, so that no lease is missed.
        own_filter = {"example": OuterRef("pk")}
        unused_items = QueueItem.objects.filter(
            ~Exists(JudgeLease.objects.filter(**own_filter)),
            ~Exists(Validation.objects.filter(**own_filter)),
            pk__in=ids,
            example__consensus__isnull=True,
            example__vote_draw__isnull=True,
        )
        unused_ids = list(unused_items.order_by("pk").values_list("pk", flat=True))
        QueueItem.objects.filter(pk__in=unused_ids).delete()
        if first_id is None and unused_ids:
            first_id = unused_ids[0]
        last_id = ids[-1]


@transaction.atomic
def store_draws(
    *, round: Round, asked_rule: DrawRule, answers: Mapping[Example, JudgeAnswer]
) -> None:
    """Draw these examples by the round's rule, and store it; an example drawn before stays so.

    asked_rule: the rule by which the judge was asked. Stores nothing if the round has no rule any
    more, or one with another judge or instruction. Locks the round's policy.
    """
    policy_row = RoundPolicy.objects.select_for_update(of=("self",)).get(round=round)
    rule = policy_row.draw_rule
    # The owner changed it while the judge was asked.
    if rule is None or not rule.has_same_judge(asked_rule):
        return
    # A deleted judge leaves no row to refer to, but its draws still count.
    judge_id = rule.judge if TargetModel.objects.filter(pk=rule.judge).exists() else None
    rows = []
    for example, answer in answers.items():
        draw = draw_for_people(example.uuid, answer, rule.min_chance, settings.SECRET_KEY)
        row = VoteDraw(example=example, round=round, judge_id=judge_id, **asdict(draw))
        row.prompt_digest = rule.prompt_digest
        rows.append(row)
    # The primary key decides between two workers, and between an answer and a later one.
    VoteDraw.objects.bulk_create(rows, ignore_conflicts=True)


def note_judge_state(policy_row: RoundPolicy, *, is_down: bool) -> None:
    """Store since when the judge hasn't answered, or that it answers. One update, no lock."""
    if is_down == (policy_row.judge_down_since is not None):
        return
    policy_row.judge_down_since = timezone.now() if is_down else None
    # Only this column: another request may change the rule meanwhile.
    RoundPolicy.objects.filter(pk=policy_row.pk).update(
        judge_down_since=policy_row.judge_down_since
    )
