"""A log that Inspect itself writes, of an agent that calls tools, is judged and goes back."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from annotation.models import Example
from tasks.models import Task, TaskMember
from tests.support.factories import UserFactory, importing
from tests.support.judging import judge
from tests.support.writing import signed_in

JUDGE = "/t/agent/judge/"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The `.eval` file of two samples, in one of which a tool fails; and the samples."""
    from inspect_ai import Task as InspectTask
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import ToolError, tool

    # Otherwise it downloads a tokenizer.
    monkeypatch.setattr("inspect_ai.model._model.count_text_tokens", len)

    @tool
    def look_up():
        async def execute(city: str) -> str:
            """Look up how warm it is.

            Args:
                city: Its name.
            """
            if city == "Atlantis":
                raise ToolError("There is no such city.")
            return "17 degrees"

        return execute

    def call(city):
        return ModelOutput.for_tool_call("mockllm/model", "look_up", {"city": city})

    outputs = [
        call("Oslo"),
        ModelOutput.from_content("mockllm/model", "It is 17 degrees."),
        call("Atlantis"),
        ModelOutput.from_content("mockllm/model", "I do not know."),
    ]
    samples = [
        Sample(input=f"How warm is it in {city}?", target="17", id=city)
        for city in ("Oslo", "Atlantis")
    ]
    [log] = evaluate(
        InspectTask(dataset=samples, solver=[use_tools(look_up()), generate()]),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path / "logs"),
        log_format="eval",
        display="none",
        max_samples=1,
    )
    assert log.status == "success"
    return log.location, log.samples


def test_calls_of_tools_come_in_by_rows_and_go_back_by_ids(log, db):
    path, samples = log
    options = ["--from", "inspect_logs", "--task", "agent", "--create"]
    options += ["--judge", "--labels", "right,wrong"]
    call_command("import_examples", path, *importing(options), stdout=StringIO())
    turns = {example.uid: example.context.fields["trace"] for example in Example.objects.all()}
    assert turns.keys() == {sample.uuid for sample in samples}
    for sample in samples:
        roles = [turn["role"] for turn in turns[sample.uuid]]
        assert roles == [message.role for message in sample.messages]
        call = json.dumps(turns[sample.uuid][1])
        assert "look_up" in call
        has_failed = turns[sample.uuid][-2]["text"] == "There is no such city."
        assert has_failed == ("Atlantis" in call)
    task = Task.objects.get(code="agent")
    person = UserFactory()
    TaskMember.objects.create(task=task, user=person, role="judge")
    client = signed_in(person)
    page = client.get(JUDGE).text
    assert "look_up" in page
    assert "17 degrees" in page or "There is no such city." in page
    assert judge(client, "label:right", JUDGE).status_code == 200
    out = StringIO()
    call_command("export_examples", task="agent", round=1, to="inspect_logs", stdout=out)
    judged = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {line["uuid"] for line in judged} <= turns.keys()
