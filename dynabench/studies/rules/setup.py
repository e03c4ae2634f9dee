"""What a plan says of the site: the task of all arms, their models, and the campaign. Pure."""

import hmac
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from tasks.config.components import ConfigPart, NonEmptyText
from tasks.config.parsing import dump_yaml

MAX_CODE_CHARS = 40
"""The longest URL name of a task, and of a campaign."""
CODE_DIGITS = 8
"""Characters that tell the codes of a study's arms apart."""
SPARE_SHARE = 0.2
"""The places beyond the plan's people, for those who leave before they submit."""


class ArmModel(ConfigPart):
    """The model of an arm: a target's adapter, address and options, without its secret."""

    adapter: NonEmptyText
    url: NonEmptyText
    options: dict[str, Any] = Field(default_factory=dict)


class CampaignSetup(ConfigPart):
    """The campaign that recruits for an arm. All arms have the same one, but for its name.

    pay_task: in the currency's smallest unit.
    """

    consent: NonEmptyText
    ethics: NonEmptyText
    way: NonEmptyText = "link"
    minutes: Annotated[int, Field(ge=1)] = 60
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "EUR"
    pay_task: Annotated[int, Field(ge=0)] = 0
    completion_url: str = ""
    code_done: str = ""
    code_returned: str = ""
    questions: dict[str, Any] = Field(default_factory=dict)
    """The questionnaire before and after the work, as a campaign's."""


class Setup(ConfigPart):
    """All that a site needs to carry out a plan, besides the cases."""

    task: dict[str, Any]
    """The configuration of the task, as a model's arm has it."""
    campaign: CampaignSetup


def build_arm_code(study: str, arm: str, key: str) -> str:
    """Return the URL name of an arm's task and campaign, from which people learn no condition.

    key: the site's secret. Without it nobody can try which arm's name gives a code.

    >>> build_arm_code("help-with-facts", "model_a", "secret")
    'help-with-facts-64ee54d6'
    """
    digest = hmac.new(key.encode(), f"{study}/{arm}".encode(), "sha256").hexdigest()
    return f"{study}-{digest[:CODE_DIGITS]}"


def build_arm_config(task: Mapping[str, Any], *, has_model: bool, instructions: str = "") -> str:
    """Return the configuration of an arm's task in YAML.

    Without a model, a decision has no conversation: people answer as they are used to.
    instructions: those of this arm; empty for the ones that all arms have.
    """
    if instructions:
        task = {**task, "instructions": instructions}
    verdict = task.get("verdict")
    if has_model or not isinstance(verdict, Mapping) or verdict.get("type") != "decide":
        return dump_yaml(task)
    inputs = [field for field in task.get("input", ()) if field.get("type") != "chat"]
    # A task has outputs, although here nobody but the people gives them.
    changes = {
        "input": inputs,
        "output": list(verdict.get("fields", ())),
        "metrics": {"main": "accuracy"},
    }
    return dump_yaml({**task, **changes})


def count_arm_places(people: int, share: float) -> int:
    """Return how many people an arm's campaign admits. share: the arm's part of the people.

    >>> count_arm_places(600, 1 / 4)
    180
    """
    return round(people * share * (1 + SPARE_SHARE))
