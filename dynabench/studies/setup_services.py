"""Make what a plan's `setup` describes: a task and a campaign for each arm, and the study."""

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Invalid, Refused
from dynabench.campaigns.services import make_campaign, set_campaign_state
from dynabench.studies.models import Study
from dynabench.studies.rules.model_alone import KEY, read_key
from dynabench.studies.rules.plan import Arm, StudyPlan, build_config_of_arm
from dynabench.studies.rules.setup import count_arm_places
from dynabench.studies.services import (
    freeze_study,
    get_campaign_slug,
    make_study,
    parse_site_plan,
)
from tasks.config.parsing import dump_yaml
from tasks.contexts.files import Summary, summarise_file
from tasks.contexts.services import import_contexts
from tasks.making.proposal_services import request_approval
from tasks.making.services import make_own_task
from tasks.models import Round, Task, TaskProposal
from tasks.permissions import needs_approval
from tasks.rounds.opening_services import request_round_state
from tasks.rounds.services import add_target_to_planned_round, change_round
from tasks.targets.services import add_target

TARGET_NAME = "model"
"""The name of the model in each arm's task. The arm's own name would tell the condition."""


@transaction.atomic
def set_up_study(
    *,
    plan_text: str,
    cases: bytes,
    file_name: str,
    actor: User,
    is_approved: bool = False,
) -> Study:
    """Make the tasks, rounds, models, campaigns and the draft of a plan with `setup`.

    cases: the file of contexts, with a key in their metadata. is_approved: whether an administrator
    has allowed the tasks. Makes all or nothing. Locks the actor and each task. Raises Refused,
    Invalid, FileError.
    """
    plan = parse_site_plan(plan_text)
    if plan.setup is None:
        raise Invalid(_("The plan has no setup, which describes the task."), field="plan_text")
    summary: Summary | None = None
    for arm in plan.arms:
        # The tasks of a study count once, by its first one.
        is_counted = arm == plan.arms[0]
        task = _make_arm_task(plan, arm, actor, is_approved=is_approved, is_counted=is_counted)
        # The same cases in all arms, so the file is read once.
        summary = summary or _read_cases(cases, file_name, task, plan)
        _fill_round(arm, task, summary, file_name, actor)
        _make_arm_campaign(plan, arm, task, actor)
    first_task = Task.objects.get(code=get_campaign_slug(plan, plan.arms[0]))
    return make_study(task=first_task, actor=actor, plan_text=plan_text)


def _make_arm_task(
    plan: StudyPlan, arm: Arm, actor: User, *, is_approved: bool, is_counted: bool
) -> Task:
    """Make the hidden task of an arm, with its first round. Nobody tries its model out."""
    assert plan.setup is not None
    task, _notes = make_own_task(
        creator=actor,
        code=get_campaign_slug(plan, arm),
        text=build_config_of_arm(plan.setup, arm),
        allow_try_out=False,
        is_approved=is_approved,
        is_counted=is_counted,
    )
    return task


def _read_cases(cases: bytes, file_name: str, task: Task, plan: StudyPlan) -> Summary:
    """Return the rows of the file. Raises Invalid with the first bad line, or for too few rows."""
    summary = summarise_file(cases, file_name, task.config, ())
    if summary.errors:
        raise build_line_error(summary.errors[0].line, summary.errors[0].message)
    # The outcome compares with it, also where the arm has no model.
    verdict = task.config.verdict
    if verdict.type == "decide":
        for row in summary.rows:
            if read_key(row.values.get("metadata") or {}, verdict.fields) is None:
                problem = f'write `metadata` as {{"{KEY}": {{"{verdict.fields[0]}": …}}}}'
                raise build_line_error(row.line, problem)
    # The interval by cases needs those that the plan was simulated with.
    if summary.new_count < plan.size.contexts:
        message = _("The plan has %(planned)d cases, and the file has %(given)d.")
        numbers = {"planned": plan.size.contexts, "given": summary.new_count}
        raise Invalid(message % numbers, field="cases")
    return summary


def build_line_error(line: int, problem: str) -> Invalid:
    """Return the refusal of a file of cases because of one of its lines."""
    # Translators: a problem of a file, at the number of its line
    message = _("Line %(line)d: %(problem)s")
    return Invalid(message % {"line": line, "problem": problem}, field="cases")


def _fill_round(arm: Arm, task: Task, summary: Summary, file_name: str, actor: User) -> None:
    """Store the cases in the task's first round, and add the arm's model to it."""
    round = task.rounds.get()
    import_contexts(round=round, summary=summary, file_name=file_name, actor=actor)
    # People don't read which model they talk to; once the round is over, its name says nothing.
    change_round(round=round, actor=actor, fields={"show_target_name": False})
    if arm.model is not None:
        fields = {**arm.model.model_dump(), "name": TARGET_NAME}
        add_target_to_planned_round(
            target=add_target(task=task, actor=actor, fields=fields), actor=actor
        )


def _make_arm_campaign(plan: StudyPlan, arm: Arm, task: Task, actor: User) -> None:
    """Make the draft of an arm's campaign. Its name says nothing of the arm."""
    assert plan.setup is not None
    setup = plan.setup.campaign
    share = 1.0 if plan.design == "within" else arm.ratio / sum(plan.ratios.values())
    questions = dump_yaml(setup.questions) if setup.questions else ""
    make_campaign(
        task=task,
        actor=actor,
        token="",
        name=plan.title,
        slug=get_campaign_slug(plan, arm),
        places=count_arm_places(plan.size.people, share),
        each=plan.size.each,
        questions=questions,
        **setup.model_dump(exclude={"questions"}),
    )


def open_study(*, study: Study, actor: User, ethics_name: str) -> None:
    """Open the rounds of all arms, freeze the plan, and open the campaigns.

    ethics_name: who stands for the ethics statement. Calls the models first, so use it outside
    transactions. What was opened stays open if a later step is refused; call it again then. Nothing
    is opened or frozen while a task waits for approval. Raises Refused, Invalid, RoundError.
    """
    plan = study.plan
    codes = [get_campaign_slug(plan, arm) for arm in plan.arms]
    if list_unapproved_tasks(study):
        message = _("Administrators must approve the study first. Request approval.")
        raise Refused(message, code="approval")
    for round in Round.objects.filter(task__code__in=codes).select_related("task"):
        if round.state in (Round.State.DRAFT, Round.State.READY):
            request_round_state(round=round, state=Round.State.OPEN, actor=actor)
    study.refresh_from_db()
    if study.state == Study.State.DRAFT:
        freeze_study(study=study, actor=actor)
    # Campaigns last: from here on people can come, and the plan is frozen.
    for arm in study.arms.select_related("campaign__task"):
        if arm.campaign.state == arm.campaign.State.DRAFT:
            set_campaign_state(
                campaign=arm.campaign, actor=actor, state="open", ethics_name=ethics_name
            )


def list_unapproved_tasks(study: Study) -> list[Task]:
    """Return the tasks of the arms that administrators must approve first. One query."""
    plan = study.plan
    codes = [get_campaign_slug(plan, arm) for arm in plan.arms]
    tasks = Task.objects.filter(code__in=codes).select_related("proposal").order_by("code")
    return [task for task in tasks if needs_approval(task)]


@transaction.atomic
def request_study_approval(*, study: Study, actor: User) -> None:
    """Ask administrators to approve the tasks of all arms that don't wait for it yet.

    The tasks stay hidden, because people come by the study's link. Takes the locks of
    `request_approval` for each task. Raises Refused, Invalid.
    """
    plan = study.plan
    people = _("%(n)d people by the link of a study") % {"n": plan.size.people}
    for task in list_unapproved_tasks(study):
        proposal = getattr(task, "proposal", None)
        if proposal is None or proposal.state != TaskProposal.State.WAITING:
            request_approval(task=task, actor=actor, goal=plan.question, people=people, show=False)
