"""Test a new judge once, so that its maker sees at once if the model, key or prompt is wrong."""

from core.accounts.models import User
from evaluation.judges.llm_judges.questions import (
    ANSWER_FIELD,
    CRITERION_FIELD,
    get_verdict_labels,
    has_criteria,
    list_prompt_fields,
)
from evaluation.models import LlmJudge
from tasks.targets.ask_before_opening import PLAIN_TEXT, build_sample, fill_inputs
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.contact_services import Contact
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.first_contact import try_chat


def contact_judge(judge: LlmJudge, actor: User) -> Contact | None:
    """Test a judge by asking it about the task's example (see `try_chat`).

    Returns None if the task has no example.
    """
    task = judge.task
    inputs = fill_inputs(task, build_sample(task))
    # The task has no example to test the judge with.
    if inputs is None:
        return None

    def build_endpoint() -> Endpoint:
        fields, labels = list_prompt_fields(task.config), get_verdict_labels(task.config)
        return build_chooser_endpoint(
            judge.target, fields, output="verdict", labels=labels, prompt=judge.prompt
        )

    question = {**inputs, ANSWER_FIELD: PLAIN_TEXT}
    if has_criteria(task.config):
        question[CRITERION_FIELD] = PLAIN_TEXT
    return try_chat(judge.target, actor, build_endpoint, question)
