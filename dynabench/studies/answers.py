"""The studies' answers to the questions that `dynabench.campaigns` and `tasks` ask."""

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from core.accounts.models import User
from dynabench.campaigns import questions
from dynabench.campaigns.models import SUBMITTED_STATES, Campaign, Place
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.models import Pilot, StudyArm, StudyDraw
from dynabench.studies.selectors import list_panel_hashes
from tasks import questions as task_questions
from tasks.models import Task


@task_questions.is_rehearsed.answer
def is_rehearsed(task: Task) -> bool:
    """Return whether the task is the copy of an arm, in which a study is tried out."""
    return StudyArm.objects.filter(campaign__task=task.pk, study__pilot_of__isnull=False).exists()


@task_questions.find_deletion_problem.answer
def find_deletion_problem(task: Task) -> str:
    """Return that a pilot goes first, if it belongs to a study of the task or the task to it."""
    # Without its row nobody could delete the pilot's copies, and their rounds could be closed.
    is_concerned = Q(study__task=task) | Q(rehearsal__arms__campaign__task=task)
    pilot = Pilot.objects.filter(is_concerned).select_related("study").first()
    if pilot is None:
        return ""
    title = pilot.study.plan.title
    return _("First delete the pilot of the study “%(study)s”.") % {"study": title}


@questions.find_study_door.answer
def find_study_door(campaign: Campaign, arrival: Arrival | None, user: User | None) -> str:
    """Return the address of the study's draw for who was not drawn into this arm."""
    arm = StudyArm.objects.filter(campaign=campaign).select_related("study").first()
    if arm is None:
        return ""
    draws = StudyDraw.objects.filter(arm=arm)
    if arrival:
        hashes = list_panel_hashes(campaign, arrival)
        is_drawn = draws.filter(id_hash__in=hashes) | draws.filter(place__id_hash__in=hashes)
    else:
        # Another account of the person goes to the draw first, which then is this one's.
        is_drawn = draws.filter(annotator__user=user) if user else draws.none()
    return "" if is_drawn.exists() else reverse("studies:arrive", args=[arm.study.code])


@questions.find_next_part.answer
def find_next_part(place: Place) -> str:
    """Return the address of the study if an arm of the person's order is left."""
    arm = StudyArm.objects.filter(campaign=place.campaign_id).select_related("study").first()
    if arm is None or place.state not in SUBMITTED_STATES or arm.study.plan.design != "within":
        return ""
    draw = StudyDraw.objects.filter(arm=arm, place=place).first()
    # In the minute before the draw is matched with the place.
    if draw is None and place.id_hash:
        draw = StudyDraw.objects.filter(arm=arm, id_hash=place.id_hash).first()
    elif draw is None:
        draw = StudyDraw.objects.filter(arm=arm, annotator=place.annotator_id).first()
    if draw is None or not draw.select_later_parts().exists():
        return ""
    return reverse("studies:arrive", args=[arm.study.code])
