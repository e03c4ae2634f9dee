"""Writes about weak spots: offer one to writers as a challenge."""

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Invalid, Refused
from tasks.config.new_challenge import add_challenge
from tasks.config.parsing import ConfigError
from tasks.config_changes import hash_text
from tasks.models import Task
from tasks.services import save_config


def offer_challenge(*, task: Task, name: str, sentence: str, actor: User) -> Task:
    """Add a challenge to the task's configuration, so that writers are asked for such texts.

    `save_config` locks the task. Raises Invalid if the task has a challenge of that name, and
    Refused if the configuration is written so that none can be added, or has become invalid.
    """
    if name in task.config.challenges:
        raise Invalid(_("The task already has a challenge of this name."), field="name")
    former_text = task.config_text
    try:
        text = add_challenge(former_text, name, sentence)
        return save_config(task=task, text=text, base=hash_text(former_text), actor=actor)
    except ConfigError as error:
        message = _("Add this challenge in Configuration: %(problem)s")
        raise Refused(message % {"problem": error.problems[0]}, code="config") from None
