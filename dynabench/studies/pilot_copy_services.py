"""Copy the arms of a study for a pilot: a private task, a round and a campaign for each.

Only simulated people come to the copies. So nothing of a pilot is a row of the study, of its tasks
or of their models.
"""

import secrets
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Invalid
from core.files.decoding import DecodedMedia
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.services import make_campaign
from dynabench.studies.models import Study
from dynabench.studies.rules.plan import Arm, StudyPlan
from dynabench.studies.rules.setup import build_arm_code
from dynabench.studies.rules.simulated_inputs import find_unwritable_field
from dynabench.studies.services import freeze_study, get_campaign_slug, make_study
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.contexts.media.services import list_context_digests, store_decoded
from tasks.contexts.services import store_contexts
from tasks.models import Generator, Round, TargetModel, Task, TaskMember
from tasks.permissions import check_owner
from tasks.rounds.services import plan_round
from tasks.selectors import list_targets
from tasks.services import create_task_without_files, list_example_digests
from validation.decisions.consensus_rows import get_round_policy
from validation.models import RoundPolicy

SECRET_FIELDS = ("secret_env", "sealed_secret")
TARGET_FIELDS = (
    *("name", "adapter", "url", "source", "allowed_folder", "revision"),
    *("options", "serving", "gpus", *SECRET_FIELDS),
)
"""What makes a target the same model at the same address."""
GENERATOR_FIELDS = ("name", "adapter", "url", "options", *SECRET_FIELDS)
ROUND_FIELDS = ("rule", "show_target_name", "description")
"""What people meet in a round. Not its budget and its end: nothing of a pilot closes by itself."""
CAMPAIGN_FIELDS = (
    *("kind", "each", "minutes", "minimum_age", "languages", "questions", "help_text"),
    *("tour", "deterrents", "is_labelled", "currency", "machine_hour"),
)
"""What people meet in a campaign, and what prices its models.

Not its pay: the ledger has only money that somebody is owed.
"""
NO_CONSENT = "Simulated people agree to this."


def find_pilot_problem(study: Study) -> str:
    """Return why simulated people can't take part in a study; "" if they can. Queries per arm."""
    plan = study.plan
    if hasattr(study, "pilot_of"):
        return _("This study is a pilot itself.")
    for arm in plan.arms:
        if problem := _find_arm_problem(plan, arm):
            # Translators: a reason why an arm of a study can't be tried out
            return _("Arm %(arm)s: %(problem)s") % {"arm": arm.name, "problem": problem}
    return ""


def _find_arm_problem(plan: StudyPlan, arm: Arm) -> str:
    """Return why simulated people can't work in an arm; "" if they can."""
    campaign = _find_campaign(plan, arm)
    if campaign is None:
        return _("Its campaign was deleted.")
    # Judges need other people's examples, and pairs their votes: a copy has neither.
    if campaign.kind != Campaign.Kind.WRITE:
        return _("Simulated people only write and decide. They don't judge or compare.")
    round = _find_round(campaign)
    if round is None:
        return _("All its rounds have ended. Plan another round.")
    # Some of its texts come from machines and drafts, which a copy would have to make first.
    if round.arm_shares:
        return _("Its round is mixed, and simulated people can't stand in for machines.")
    field = find_unwritable_field(campaign.task.config)
    if field is not None:
        return _("Simulated people can't fill in “%(field)s”.") % {"field": field.title}
    return ""


def _find_campaign(plan: StudyPlan, arm: Arm) -> Campaign | None:
    """Return the campaign of an arm, with its task."""
    campaigns = Campaign.objects.select_related("task")
    return campaigns.filter(slug=get_campaign_slug(plan, arm)).first()


def _find_round(campaign: Campaign) -> Round | None:
    """Return the round in which people of a campaign write: the open one, else the next one."""
    # Without a choice, work counts in all rounds of the task.
    rounds = (
        campaign.task.rounds.filter(Q(campaigns=campaign))
        if campaign.rounds.exists()
        else (campaign.task.rounds.all())
    )
    unfinished = list(rounds.exclude(state__in=Round.FINISHED_STATES).order_by("number"))
    return next((r for r in unfinished if r.state == Round.State.OPEN), None) or next(
        iter(unfinished), None
    )


@transaction.atomic
def copy_study(*, study: Study, actor: User, places: int) -> Study:
    """Copy a study with its arms under another code, freeze the copy, and return it.

    places: of each campaign at least. Locks what `freeze_study` does. Raises Refused.
    """
    plan = study.plan
    code = f"pilot-{secrets.token_hex(4)}"
    data: dict[str, Any] = plan.model_dump(mode="json", exclude_none=True)
    data |= {"study": code, "title": f"Pilot: {plan.title}"}
    # What a setup describes is made already, and the copies are made of that.
    data.pop("setup", None)
    first_task: Task | None = None
    for arm, arm_data in zip(plan.arms, data["arms"], strict=True):
        slug = build_arm_code(code, arm.name, settings.SECRET_KEY)
        task = _copy_arm(plan, arm, slug, actor, places)
        first_task = first_task or task
        for name in ("model", "instructions"):
            arm_data.pop(name, None)
        arm_data["campaign"] = slug
    assert first_task is not None
    copy = make_study(task=first_task, actor=actor, plan_text=dump_yaml(data))
    freeze_study(study=copy, actor=actor)
    # Without the checks of a campaign that recruits: nobody but simulated people can come.
    Campaign.objects.filter(study_arm__study=copy).update(
        state=Campaign.State.OPEN, opened_at=timezone.now()
    )
    copy.refresh_from_db()
    return copy


def _copy_arm(plan: StudyPlan, arm: Arm, slug: str, actor: User, places: int) -> Task:
    """Copy the campaign of an arm, with the task and the round in which its people write.

    Each arm gets a task of its own, also where arms share one: the same simulated person may be in
    several of them at almost the same time. Raises Refused.
    """
    campaign = _find_campaign(plan, arm)
    round = _find_round(campaign) if campaign else None
    if campaign is None or round is None:
        raise Invalid(f"The campaign or the round of {arm.name} is gone.")
    # A worker copies minutes later, and by then somebody may have taken the role away.
    check_owner(actor, campaign.task)
    task = _copy_task(campaign.task, slug, actor)
    copied_round = _copy_round(round, task, actor)
    _copy_campaign(campaign, copied_round, slug, actor, places)
    return task


def _copy_task(task: Task, code: str, actor: User) -> Task:
    """Copy a task with its generator and the files of its examples. Only the actor sees it."""
    data = read_yaml(task.config_text).data
    data["name"] = f"Pilot: {task.config.name}"[:100]
    # No judge model draws a sample here: simulated judges can read everything.
    data.get("validation", {}).pop("sample", None)
    copy, _notes = create_task_without_files(
        code=code,
        config_text=dump_yaml(data),
        actor=actor,
        is_visible=False,
        allow_try_out=False,
        # No administrator has approved it, and it takes none of the tasks that people may begin.
        is_unapproved=True,
        made_by=None,
    )
    TaskMember.objects.create(task=copy, user=actor, role=TaskMember.Role.OWNER)
    _copy_media(task, copy, list_example_digests(task.config))
    generator = Generator.objects.filter(task=task).first()
    if generator is not None:
        values = {name: getattr(generator, name) for name in GENERATOR_FIELDS}
        Generator.objects.create(task=copy, **values)
    return copy


def _copy_round(round: Round, task: Task, actor: User) -> Round:
    """Copy a round with its models, their secrets, its texts and its rule for votes.

    The copied models have budgets of their own, so that a pilot spends none of the study's.
    """
    targets = []
    for entry in list_targets(round):
        values = {name: getattr(entry.target, name) for name in TARGET_FIELDS}
        targets.append(TargetModel.objects.create(task=task, **values))
    fields = {name: getattr(round, name) for name in ROUND_FIELDS}
    copy = plan_round(task=task, actor=actor, fields=fields, targets=targets)
    contexts = list(round.contexts.filter(is_retired=False).order_by("pk"))
    _copy_media(round.task, task, list_context_digests(context.fields for context in contexts))
    rows = [
        {**context.fields, "tag": context.tag, "metadata": context.metadata} for context in contexts
    ]
    if rows:
        store_contexts(round=copy, rows=rows, file_name="(texts of a study)", actor=actor)
    # Owners may have changed it since the task was configured.
    policy = RoundPolicy.objects.filter(round=round).values_list("policy", flat=True).first()
    if policy is not None:
        get_round_policy(copy)
        RoundPolicy.objects.filter(round=copy).update(policy=policy)
    return copy


def _copy_media(source: Task, task: Task, digests: set[str]) -> None:
    """Copy pictures and recordings from one task to another."""
    for media in source.media.filter(digest__in=digests) if digests else ():
        with media.file.open() as file:
            decoded_file = DecodedMedia(file.read(), media.mime, media.about)
        store_decoded(task=task, decoded_file=decoded_file)


def _copy_campaign(campaign: Campaign, round: Round, slug: str, actor: User, places: int) -> None:
    """Copy a campaign, without pay, without a budget, and without a test of gold items.

    Simulated people come by ids, as those of a panel.
    """
    consent = campaign.consents.first()
    values = {name: getattr(campaign, name) for name in CAMPAIGN_FIELDS}
    make_campaign(
        task=round.task,
        actor=actor,
        name=f"Pilot: {campaign.name}"[:100],
        slug=slug,
        way="link",
        places=max(campaign.places, places),
        consent=consent.text if consent else NO_CONSENT,
        rounds=[round],
        **values,
    )
