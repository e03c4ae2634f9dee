"""Which tasks adversaries can work in, and who may run them."""

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from dynabench.adversaries.kinds.base import AdversaryKind, list_kinds
from dynabench.adversaries.models import Adversary
from dynabench.adversaries.talk_fit import check_talk_fits, has_talks_to_attack
from dynabench.adversaries.writer_services import WRITER_ADAPTER
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_read, can_see

OWN_REASONS = ("no_writer", "no_talks")
"""The codes of refusals that concern one kind, in a task in which others may work."""


def can_run_adversaries(user: Person, task: Task) -> bool:
    """Return whether the person may see and run the task's adversaries.

    Their log has labels and answers, so an owner who judges blind may not.
    """
    return can_edit(user, task) and can_read(user, task)


def can_run_program(user: User, adversary: Adversary) -> bool:
    """Return whether the person may run an adversary's program."""
    is_named = user.is_active and adversary.program_user_id == user.pk
    if is_named and can_see(user, adversary.task):
        return True
    return can_run_adversaries(user, adversary.task)


def reads_context(config: TaskConfig) -> bool:
    """Return whether the models read a text that the owners imported."""
    return any(component.name in config.model_fields for component in config.context)


def has_one_text_and_label(config: TaskConfig) -> bool:
    """Return whether people write one text for a label, and models answer with a label."""
    label_field, text_field = config.goal.field, config.text_field
    if config.kind != "examples" or config.talk or label_field != config.answer_field:
        return False
    rule = config.verdict
    if rule.type != "exact_match" or rule.fields != (label_field,) or config.media_fields:
        return False
    # Any further field that is required would need somebody who knows what to write there.
    return text_field in config.model_fields and not any(
        component.required and component.when is None
        for component in config.input
        if component.name not in (text_field, label_field)
    )


def can_be_attacked(config: TaskConfig) -> bool:
    """Return whether adversaries of some kind can work in such a task."""
    return has_talks_to_attack(config) if config.talk else has_one_text_and_label(config)


def check_fits(task: Task, kind: AdversaryKind) -> None:
    """Check that an adversary of this kind can work in the task. Raises Refused."""
    config = task.config
    if config.talk:
        check_talk_fits(config, kind)
    elif not has_one_text_and_label(config):
        raise Refused(_("Adversaries need conversations, or one text for a label."), code="unfit")
    if not config.programs.write:
        raise Refused(
            _(
                "Only people can write in this task. To allow adversaries, set `programs: {write:"
                " true}` in the configuration."
            ),
            code="programs",
        )
    if reads_context(config) and not kind.reads_context:
        raise Refused(
            _("This kind can't write about the task's texts. Choose another kind."), code="unfit"
        )
    if kind.model_setting and not task.targets.filter(adapter=WRITER_ADAPTER).exists():
        raise Refused(
            _("This kind needs a chat model that writes. Add one under Models first."),
            code="no_writer",
        )


def list_fitting_kinds(task: Task) -> list[AdversaryKind]:
    """Return the kinds that can work in the task, in order."""
    fitting_kinds = []
    for kind in list_kinds():
        try:
            check_fits(task, kind)
        except Refused:
            continue
        fitting_kinds.append(kind)
    return fitting_kinds


def list_lacking_kinds(task: Task) -> list[tuple[AdversaryKind, str]]:
    """Return the kinds that need a chat model, or can't have conversations, with the reasons.

    Empty for a task in which no kind could work.
    """
    if not can_be_attacked(task.config):
        return []
    lacking_kinds = []
    for kind in list_kinds():
        try:
            check_fits(task, kind)
        except Refused as refusal:
            if refusal.code in OWN_REASONS:
                lacking_kinds.append((kind, str(refusal)))
    return lacking_kinds


def find_unfit_reason(task: Task) -> str:
    """Return why no adversary can work in the task; "" if one can, or each kind has its reason."""
    if list_fitting_kinds(task):
        return ""
    for kind in list_kinds():
        try:
            check_fits(task, kind)
        except Refused as refusal:
            # A kind's own reason is listed beside its name.
            if refusal.code not in OWN_REASONS:
                return str(refusal)
    return ""
