"""Free-text answers of a model that people and a chat model have judged."""

from annotation.models import Example, TargetOutput
from core.accounts.models import Annotator
from tasks.models import Round, TargetModel, TargetVersion, Task
from tests.support.factories import ContextFactory, scripted_target
from validation.models import Consensus

FREE = """
version: 1
name: Free
goal: {text: Ask a question that the model answers wrongly}
context: [{name: passage, type: text, label: Passage}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1}
validation: {corrections: true}
"""


def judged_answers(authors: int) -> Task:
    """Three answers to each author; every third is wrong, which its text says."""
    task = Task.objects.create(code="free", name="Free", config_text=FREE)
    round = Round.objects.create(task=task, number=1, state="closed")
    context = ContextFactory(round=round, fields={"passage": "The bus stops at Tarn."})
    people = Annotator.objects.bulk_create(Annotator(pseudonym=f"w{n}") for n in range(authors))
    target = scripted_target(round)
    version = TargetVersion.objects.create(target=target, digest="d")
    wrong = [number % 3 == 0 for number in range(3 * authors)]
    examples = Example.objects.bulk_create(
        Example(
            round=round, context=context, annotator=people[number % authors], digest=str(number),
            inputs={"question": f"Where is {number}?"},
            outcome="fooled" if is_wrong else "not_fooled",
        )
        for number, is_wrong in enumerate(wrong)
    )  # fmt: skip
    TargetOutput.objects.bulk_create(
        TargetOutput(
            example=example, target=target, version=version, seconds=0.1, fooled=is_wrong,
            output={"reply": f"{'Wrong' if is_wrong else 'Right'} {number}"},
        )
        for number, (example, is_wrong) in enumerate(zip(examples, wrong, strict=True))
    )  # fmt: skip
    Consensus.objects.bulk_create(
        Consensus(
            example=example, round=round, state="decided", votes=3, still_needed=0,
            verdict="incorrect" if is_wrong else "correct", is_verified=True, decided_by="votes",
        )
        for example, is_wrong in zip(examples, wrong, strict=True)
    )  # fmt: skip
    return task


def chat_target(task: Task, url: str, **options: object) -> TargetModel:
    """A chat model among the task's targets."""
    return TargetModel.objects.create(
        task=task, name="chat", adapter="openai_chat", url=url, options=options
    )
