"""Ask a new judge once, so that a wrong model, key or prompt is seen where it is made."""

from core.accounts.models import User
from evaluation.judges.llm_judges.selectors import ANSWER_FIELD
from evaluation.judges.llm_judges.services import VERDICT_LABELS
from evaluation.models import LlmJudge
from tasks.targets.ask_before_opening import PLAIN_TEXT, build_sample, fill_inputs
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.contact_services import Contact
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.first_contact import contact_chat


def contact_judge(judge: LlmJudge, actor: User) -> Contact | None:
    """Test a judge on the task's example, as `contact_chat` does.

    Returns None if the task has no example.
    """
    task = judge.task
    inputs = fill_inputs(task, build_sample(task))
    # The task has no example that the judge could be asked about.
    if inputs is None:
        return None

    def build() -> Endpoint:
        fields = (*task.config.model_fields, ANSWER_FIELD)
        return build_chooser_endpoint(
            judge.target, fields, output="verdict", labels=VERDICT_LABELS, prompt=judge.prompt
        )

    return contact_chat(judge.target, actor, build, {**inputs, ANSWER_FIELD: PLAIN_TEXT})
