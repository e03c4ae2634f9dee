"""Write studies: plan, freeze and close them, and draw arms for people who arrive."""

from random import SystemRandom
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.rules.draws import draw_arm
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator, log
from core.errors import Invalid, Refused
from dynabench.campaigns.models import SUBMITTED_STATES, Campaign, Place
from dynabench.campaigns.place_services import NoPlace, check_place, hash_panel_id
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.models import Study, StudyArm, StudyDraw
from dynabench.studies.rules.plan import Arm, StudyPlan, compute_plan_hash, read_plan
from dynabench.studies.rules.setup import build_arm_code
from dynabench.studies.selectors import (
    has_earlier_catches,
    list_own_annotators,
    list_panel_hashes,
)
from tasks.config.parsing import ConfigError
from tasks.models import Task
from tasks.permissions import check_owner

State = Study.State


@transaction.atomic
def make_study(*, task: Task, actor: User, plan_text: str) -> Study:
    """Create a draft of a study. Takes no lock: codes are unique. Raises Refused or Invalid."""
    check_owner(actor, task)
    plan = parse_site_plan(plan_text)
    _find_campaigns(plan, actor)
    if Study.objects.filter(code=plan.study).exists():
        raise Invalid(_("A study with this code exists. Choose another one."), field="plan_text")
    study = Study.objects.create(task=task, code=plan.study, plan_text=plan_text)
    log(actor, "study.made", task, study=study.code)
    return study


@transaction.atomic
def change_study(*, study: Study, actor: User, plan_text: str) -> None:
    """Replace the plan of a draft. Locks the study. Raises Refused or Invalid."""
    locked_study = _lock_owned_study(study, actor)
    if locked_study.state != State.DRAFT:
        raise Refused(_("This plan is frozen. Create a new study to change it."), code="state")
    plan = parse_site_plan(plan_text)
    # People may have the link already, which has the code in it.
    if plan.study != locked_study.code:
        raise Invalid(_("You can't change the code of a study."), field="plan_text")
    # The site has made the tasks and models of the first text.
    if _list_setup_parts(plan) != _list_setup_parts(locked_study.plan):
        message = _("You can't change the setup or the models of a study.")
        raise Invalid(message, field="plan_text")
    _find_campaigns(plan, actor)
    locked_study.plan_text = plan_text
    locked_study.save(update_fields=["plan_text"])
    log(actor, "study.changed", locked_study.task, study=locked_study.code)


def _list_setup_parts(plan: StudyPlan) -> list[Any]:
    """Return what the site makes of a plan: the setup, each arm's model and its instructions."""
    return [plan.setup, *((arm.model, arm.instructions) for arm in plan.arms)]


@transaction.atomic
def freeze_study(*, study: Study, actor: User) -> None:
    """Freeze the plan with its hash and the time, and let people join.

    Nobody may have taken part in a campaign of an arm before: the plan comes before the data. Locks
    the study, then the campaigns. Raises Refused or Invalid.
    """
    locked_study = _lock_owned_study(study, actor)
    if locked_study.state != State.DRAFT:
        raise Refused(_("This plan is frozen already."), code="state")
    plan = locked_study.plan
    campaigns = _find_campaigns(plan, actor)
    # Locked, so that nobody takes a place between this check and the freeze.
    pks = [campaign.pk for campaign in campaigns]
    list(Campaign.objects.select_for_update(no_key=True).filter(pk__in=pks).order_by("pk"))
    if Place.objects.filter(campaign__in=pks).exists():
        message = _("People have already joined a campaign of this study. Use new campaigns.")
        raise Refused(message, code="data")
    locked_study.state = State.FROZEN
    locked_study.frozen_at = timezone.now()
    locked_study.plan_hash = compute_plan_hash(locked_study.plan_text)
    locked_study.save(update_fields=["state", "frozen_at", "plan_hash"])
    for position, (arm, campaign) in enumerate(zip(plan.arms, campaigns, strict=True)):
        StudyArm.objects.create(
            study=locked_study, name=arm.name, campaign=campaign, position=position
        )
    log(actor, "study.frozen", locked_study.task, study=locked_study.code)


@transaction.atomic
def close_study(*, study: Study, actor: User) -> None:
    """Close a frozen study to newcomers, and forget the ids of people who never joined.

    Locks the study. Raises Refused.
    """
    locked_study = _lock_owned_study(study, actor)
    if locked_study.state != State.FROZEN:
        raise Refused(_("Only a frozen study can be closed."), code="state")
    locked_study.state = State.CLOSED
    locked_study.save(update_fields=["state"])
    # First those who joined in the last minute, whose draw still needs its hash.
    match_draws(study=locked_study)
    StudyDraw.objects.filter(arm__study=locked_study, place=None).update(id_hash="")
    log(actor, "study.closed", locked_study.task, study=locked_study.code)


STATE_SERVICES = {"frozen": freeze_study, "closed": close_study}
"""What moves a study to each state."""


def _lock_owned_study(study: Study, actor: User) -> Study:
    """Check that the actor owns the study's task, lock the study and return it. Raises Refused."""
    check_owner(actor, study.task)
    return Study.objects.select_for_update(of=("self",)).select_related("task").get(pk=study.pk)


def parse_site_plan(text: str) -> StudyPlan:
    """Parse a plan that a site can carry out. Raises Invalid."""
    try:
        plan = read_plan(text)
    except ConfigError as error:
        raise Invalid(str(error), field="plan_text") from None
    return plan


def get_campaign_slug(plan: StudyPlan, arm: Arm) -> str:
    """Return the URL name of an arm's campaign, and with `setup` of its task; empty without one."""
    if arm.campaign or plan.setup is None:
        return arm.campaign or ""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    codes = [build_arm_code(plan.study, arm.name, key) for key in keys]
    # A draft made before the site's key changed keeps the code that it has.
    return (
        Campaign.objects.filter(slug__in=codes).values_list("slug", flat=True).first() or codes[0]
    )


def _find_campaigns(plan: StudyPlan, actor: User) -> list[Campaign]:
    """Return the arms' campaigns, in the order of the arms. Raises Refused or Invalid.

    The actor owns the task of each. All recruit in one way, since one link leads to all of them.
    """
    campaigns: list[Campaign] = []
    for arm in plan.arms:
        campaign = (
            Campaign.objects.select_related("task")
            .filter(slug=get_campaign_slug(plan, arm), study_arm=None)
            .first()
        )
        if campaign is None or campaign in campaigns:
            message = _("Name a campaign of its own for the arm %(name)s.")
            raise Invalid(message % {"name": arm.name}, field="plan_text")
        check_owner(actor, campaign.task)
        campaigns.append(campaign)
    ways = {campaign.way for campaign in campaigns}
    if len(ways) > 1 or campaigns[0].way_in.invites:
        message = _("All campaigns must recruit by the same panel or by accounts of this site.")
        raise Invalid(message, field="plan_text")
    return campaigns


@transaction.atomic
def draw_person(
    *, study: Study, arrival: Arrival | None = None, user: User | None = None
) -> StudyArm:
    """Return the arm of a person, drawn when they first arrive. Within people: the current one.

    arrival: a panel's ids. user: else the account of a person from this site. Stores of a panel's
    person only a keyed hash. Locks the study, so that the draws of an urn come one after another.
    Raises NoPlace for newcomers if the study is closed or a campaign has no place: then a draw
    would not be fair. Raises it too for people who have a place with another account.
    """
    # Other accounts of the same person get the same arm. Before the lock, as it may lock them.
    annotators = list_own_annotators(user) if user else []
    locked_study = Study.objects.select_for_update().get(pk=study.pk)
    arms = list(locked_study.arms.select_related("campaign__task"))
    annotator = get_annotator(user) if user else None
    # A panel's person has another hash in each campaign, so that all are looked up.
    hashes: list[str] = []
    if arrival:
        for arm in arms:
            hashes += list_panel_hashes(arm.campaign, arrival)
    if annotator:
        _check_no_other_account(arms, annotators, annotator)
    draws = _find_draws(locked_study, annotators, hashes)
    if draws and annotator:
        draws = _take_draws_over(locked_study, draws, annotator)
    if not draws:
        if locked_study.state != State.FROZEN:
            raise NoPlace(_("This study is closed."), code="closed")
        # In all arms, before one is drawn: else the full ones would be missing from the comparison.
        for arm in arms:
            check_place(campaign=arm.campaign)
        draws = _store_draws(locked_study, arms, arrival, annotator, hashes)
    current_id = _choose_current_draw(draws).arm_id
    return next(arm for arm in arms if arm.pk == current_id)


def _check_no_other_account(
    arms: list[StudyArm], annotators: list[int], annotator: Annotator
) -> None:
    """Check that no other account of the person has a place in an arm. Raises NoPlace.

    annotators: of all accounts of the person. annotator: of the account that comes.
    """
    other_ids = [pk for pk in annotators if pk != annotator.pk]
    campaign_ids = [arm.campaign_id for arm in arms]
    if Place.objects.filter(campaign__in=campaign_ids, annotator__in=other_ids).exists():
        message = _("You already take part in this study with another account.")
        raise NoPlace(message, code="account")


def _take_draws_over(study: Study, draws: list[StudyDraw], annotator: Annotator) -> list[StudyDraw]:
    """Give the draws of the person's other account to this one, and return the person's draws.

    Call with the study locked.
    """
    own_draws = StudyDraw.objects.filter(arm__study=study, annotator=annotator)
    # Both were drawn before the site knew that they are one person: this account keeps its own.
    if not own_draws.exists():
        # A draw is matched with the place of its account, which this one will have.
        StudyDraw.objects.filter(pk__in=[draw.pk for draw in draws]).update(annotator=annotator)
    return list(own_draws.select_related("place"))


def _store_draws(
    study: Study,
    arms: list[StudyArm],
    arrival: Arrival | None,
    annotator: Annotator | None,
    hashes: list[str],
) -> list[StudyDraw]:
    """Draw a newcomer's arm, or within people the order of all arms, and store the draws.

    Call with the study locked.
    """
    plan = study.plan
    stratum = ""
    if "skill" in plan.blocks:
        stratum = "skilled" if has_earlier_catches(annotator, hashes) else "new"
    earlier_arms: list[str] = []
    if plan.design == "between":
        rows = StudyDraw.objects.filter(arm__study=study, stratum=stratum)
        earlier_arms = list(rows.values_list("arm__name", flat=True))
    draws: list[StudyDraw] = []
    # Within people, each person empties an urn of their own.
    for _number in range(1 if plan.design == "between" else len(arms)):
        drawn = draw_arm(plan.ratios, earlier_arms, SystemRandom())
        earlier_arms.append(drawn.arm)
        arm = next(arm for arm in arms if arm.name == drawn.arm)
        draws.append(
            StudyDraw.objects.create(
                arm=arm,
                stratum=stratum,
                probability=drawn.probability,
                # The hash that the person's place in this campaign will have, so that they match.
                id_hash=hash_panel_id(arm.campaign, arrival.id) if arrival else "",
                annotator=annotator,
                first=draws[0] if draws else None,
            )
        )
    return draws


def _choose_current_draw(draws: list[StudyDraw]) -> StudyDraw:
    """Return the draw of the first arm that the person has not submitted; at the end the last."""
    for draw in draws:
        if draw.place is None or draw.place.state not in SUBMITTED_STATES:
            return draw
    return draws[-1]


def _find_draws(study: Study, annotators: list[int], hashes: list[str]) -> list[StudyDraw]:
    """Return all draws of a person, in their order; empty for a newcomer."""
    own_draws = StudyDraw.objects.filter(arm__study=study)
    is_own = Q(id_hash__in=hashes) | Q(place__id_hash__in=hashes) | Q(annotator__in=annotators)
    draw = own_draws.filter(is_own).first()
    if draw is None:
        return []
    if study.plan.design == "within":
        # Who goes on to the next part has just submitted one.
        match_draws(study=study)
    is_same_person = Q(pk=draw.first_id_or_own) | Q(first=draw.first_id_or_own)
    return list(own_draws.filter(is_same_person).select_related("place"))


@transaction.atomic
def match_draws(study: Study | None = None) -> int:
    """Note which place each drawn person took, and return how many were new.

    study: only of this one, where others wait for its lock; None for all. From then on the draw
    needs no hash of its own. Takes no lock: one update per draw.
    """
    is_same_person = Q(annotator=OuterRef("annotator")) | (
        Q(id_hash=OuterRef("id_hash")) & ~Q(id_hash="")
    )
    own_places = Place.objects.filter(is_same_person, campaign=OuterRef("arm__campaign"))
    draws = StudyDraw.objects.filter(place=None)
    if study:
        draws = draws.filter(arm__study=study)
    draws = draws.annotate(own_place=Subquery(own_places.values("pk")[:1]))
    matched_count = 0
    for draw in draws.exclude(own_place=None).values("pk", "own_place"):
        # On condition, as two processes may match at once.
        matched_count += StudyDraw.objects.filter(pk=draw["pk"], place=None).update(
            place=draw["own_place"], id_hash=""
        )
    return matched_count
