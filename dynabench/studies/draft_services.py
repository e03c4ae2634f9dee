"""Write drafts of studies: begin, store what was typed, and set the study up."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Invalid, Refused
from dynabench.studies.models import Study, StudyDraft
from dynabench.studies.pilot_services import delete_pilot
from dynabench.studies.rules.builder import (
    StudyTemplate,
    list_initial_values,
    make_code,
)
from dynabench.studies.services import get_campaign_slug
from dynabench.studies.setup_services import set_up_study
from tasks.making.services import delete_unopened_task
from tasks.models import Task
from tasks.permissions import can_make_tasks, check_owner


@transaction.atomic
def begin_draft(*, owner: User, template: StudyTemplate) -> StudyDraft:
    """Create a draft with the fields of a template.

    Locks the owner, so that parallel requests cannot exceed the limit. Raises Refused.
    """
    if not can_make_tasks(owner):
        message = _("You can't create studies yet. Confirm your email address first.")
        raise Refused(message, code="new_tasks", status=403)
    locked_owner = User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    if locked_owner.study_drafts.filter(study=None).count() >= settings.NEW_TASKS_AT_ONCE:
        message = _("You already have %(number)d drafts. Finish or delete one first.")
        raise Refused(message % {"number": settings.NEW_TASKS_AT_ONCE}, code="quota")
    values = list_initial_values(template)
    # The code is in the link that people open. Its end is random: two studies may have one title.
    return StudyDraft.objects.create(
        owner=owner,
        code=make_code(values["title"], secrets.token_hex(2)),
        design=template.design,
        values=values,
    )


def store_values(*, draft: StudyDraft, values: Mapping[str, Any]) -> None:
    """Store what was typed, right or wrong. Takes no lock: the last one counts."""
    # Wrong values, too: a refusal must not cost anybody what they typed.
    draft.values = dict(values)
    draft.save(update_fields=["values", "changed_at"])


def store_cases(*, draft: StudyDraft, cases: bytes, file_name: str) -> None:
    """Store the file of cases. Takes no lock: the last one counts."""
    draft.cases, draft.cases_name = cases, file_name[:200]
    draft.save(update_fields=["cases", "cases_name", "changed_at"])


def store_plan_text(*, draft: StudyDraft, plan_text: str) -> None:
    """Store a plan in YAML, which counts instead of the fields; empty: they count again.

    Takes no lock: the last one counts.
    """
    draft.plan_text = plan_text
    draft.save(update_fields=["plan_text", "changed_at"])


def delete_study_draft(draft: StudyDraft) -> None:
    """Delete a draft. Its study stays. Takes no lock."""
    draft.delete()


@transaction.atomic
def set_up_draft(
    *, draft: StudyDraft, actor: User, plan_text: str, cases: bytes, file_name: str
) -> Study:
    """Make the study of a draft; if it has one that never opened, replace it.

    Makes all or nothing. Locks the draft, then what `set_up_study` does. Raises Refused, Invalid,
    FileError.
    """
    locked_draft = StudyDraft.objects.select_for_update(of=("self",)).get(pk=draft.pk)
    # Whoever goes back to the fields after the set-up gets one study, and not a second one.
    if locked_draft.study:
        take_study_down(study=locked_draft.study, actor=actor)
    study = set_up_study(plan_text=plan_text, cases=cases, file_name=file_name, actor=actor)
    locked_draft.study = study
    locked_draft.save(update_fields=["study"])
    return study


@transaction.atomic
def take_study_down(*, study: Study, actor: User) -> None:
    """Delete a draft of a study with its pilot, and the tasks that its setup made.

    Locks the study, then each task. Raises Refused once its plan is frozen or a task has opened.
    """
    check_owner(actor, study.task)
    locked_study = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    if locked_study.state != Study.State.DRAFT:
        raise Refused(_("This plan is frozen. Create a new study to change it."), code="state")
    plan = locked_study.plan
    if plan.setup is None:
        raise Invalid(_("The plan has no setup, which describes the task."), field="plan_text")
    # Before its tasks, which hold the rows of simulated people.
    delete_pilot(study=locked_study, actor=actor)
    # Read now: the arms go with the study.
    codes = [get_campaign_slug(plan, arm) for arm in plan.arms]
    log(actor, "study.replaced", study.task, study=study.code)
    locked_study.delete()
    for task in Task.objects.filter(code__in=codes):
        delete_unopened_task(task=task, actor=actor)
