"""Tools that submit models and follow them: their progress, scores, errors and logs."""

from time import monotonic
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context
from pydantic import Field

from dynabench.client.agents.access import Access
from dynabench.client.agents.answers import Answer
from dynabench.client.agents.arguments import (
    MAX_TEXT_CHARS,
    Description,
    ModelId,
    ModelName,
    RunId,
    SetName,
    TaskCode,
)
from dynabench.client.agents.toolbox import Toolbox
from dynabench.client.client import AsyncDynabenchClient

Json = dict[str, Any]
POLL_SECONDS = 2.0
"""The seconds between two looks at a model that is followed."""


class Quota(Answer):
    """The number of models that may be submitted today."""

    left: int
    free_at: str | None = Field(description="When the next one may be submitted, if none is left.")


class Submitted(Answer):
    """A submitted model."""

    model_id: str = Field(description="Pass it to `follow_model`.")


class Models(Answer):
    """A list of models."""

    models: list[Json]


class Followed(Answer):
    """How far a model is, and its scores so far."""

    is_over: bool = Field(description="Whether all evaluations have ended.")
    phase: str = Field(description="One word, such as queued, scored or failed.")
    sentence: str = Field(description="The same for people.")
    results: Json = Field(
        description="`scores` by set and metric, `dynascore`, `rank`, and `error` if it failed."
    )


class Runs(Answer):
    """The evaluations of a model."""

    runs: list[Json]


class Log(Answer):
    """The end of a log that a model wrote."""

    log: str


class WrongAnswers(Answer):
    """Examples that a model got wrong or only partly right."""

    examples: list[Json]
    next_page: int | None


async def read_quota(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """Say how many models you may still submit to a task today."""
    return {**await client.quota(task)}


async def submit_predictions(
    client: AsyncDynabenchClient,
    access: Access,
    task: TaskCode,
    evaluation_set: SetName,
    name: ModelName,
    predictions: Annotated[
        str,
        Field(
            max_length=MAX_TEXT_CHARS,
            description='JSON lines: {"id": …, "output": {…}} for each input of `read_inputs`.',
        ),
    ] = "",
    path: Annotated[
        str,
        Field(max_length=500, description="Instead: such a file in the folder of --folder."),
    ] = "",
    description: Description = "",
) -> Json:
    """Submit a model's answers on an evaluation set. It counts against today's quota.

    The model stays private until a person publishes it. Follow it with `follow_model`.
    """
    with access.hold_text(predictions, path, "predictions.jsonl") as file:
        model_id = await client.submit_predictions(
            file, task, evaluation_set, name, description=description
        )
    # Not followed here: an evaluation can take hours.
    return {"model_id": model_id}


async def submit_hub_model(
    client: AsyncDynabenchClient,
    task: TaskCode,
    name: ModelName,
    source: Annotated[
        str,
        Field(
            pattern=r"^[\w.-]+/[\w.-]+$", max_length=200, description="Its id on the Hub: org/name."
        ),
    ],
    revision: Annotated[
        str, Field(pattern=r"^[0-9a-f]{40}$", description="The full hash of the commit.")
    ],
    description: Description = "",
) -> Json:
    """Submit a model on the Hugging Face Hub. It counts against today's quota.

    The site downloads it and runs it in a sandbox. It stays private until a person publishes it.
    """
    # The commit is given, so that the same model is evaluated whatever the Hub has later.
    model_id = await client.submit_hub(source, revision, task, name, description=description)
    return {"model_id": model_id}


async def submit_model_folder(
    client: AsyncDynabenchClient,
    access: Access,
    task: TaskCode,
    name: ModelName,
    path: Annotated[
        str, Field(min_length=1, max_length=500, description="In the folder of --folder.")
    ],
    description: Description = "",
) -> Json:
    """Submit a model folder (safetensors, configuration, tokenizer). It counts against the quota.

    It stays private until a person publishes it. Check it with `dynabench test` first.
    """
    # Only its configuration, weights, tokenizer and card are packed.
    folder = access.find_file(path)
    return {"model_id": await client.submit_model(folder, task, name, description=description)}


async def list_models(client: AsyncDynabenchClient, task: TaskCode | None = None) -> Json:
    """List your own models, or with a task its published models."""
    return {"models": await client.models(task)}


async def follow_model(
    client: AsyncDynabenchClient,
    context: Context,
    model_id: ModelId,
    wait_seconds: Annotated[
        int, Field(ge=0, le=50, description="How long to wait for the end; 0: don't wait.")
    ] = 20,
) -> Json:
    """Say how far a model is, and its scores. Waits a moment, and can be called again and again.

    A failed model is no error of this tool: `results.error` says what happened, and `read_log`
    has the end of its log.
    """
    # Short of the minute after which clients give up on a tool.
    ends_at = monotonic() + wait_seconds
    while True:
        results = await client.request("GET", f"/models/{model_id}/results/")
        # The end counts with the next pause, so that nobody waits longer than they said.
        is_late = monotonic() + POLL_SECONDS > ends_at
        # A model that failed is a result, too.
        if results["is_over"] or is_late:
            shown = {name: results[name] for name in ("is_over", "phase", "sentence")}
            return {**shown, "results": results}
        # Clients that show progress also extend their limit.
        await context.report_progress(wait_seconds - (ends_at - monotonic()), wait_seconds)
        await anyio.sleep(POLL_SECONDS)


async def list_runs(client: AsyncDynabenchClient, model_id: ModelId) -> Json:
    """List the evaluations of a model: state, error, limits and use of each."""
    return {"runs": await client.runs(str(model_id))}


async def read_log(
    client: AsyncDynabenchClient,
    model_id: ModelId,
    run_id: Annotated[
        RunId | None, Field(description="An evaluation. Default: the check after the submission.")
    ] = None,
    last_lines: Annotated[int, Field(ge=1, le=500)] = 60,
) -> Json:
    """Read the end of the log of a model's check or evaluation. For its owner."""
    log = await client.logs(str(model_id), str(run_id) if run_id else None)
    # Errors are at the end.
    return {"log": "\n".join(log.splitlines()[-last_lines:])}


async def list_wrong_answers(
    client: AsyncDynabenchClient,
    model_id: ModelId,
    run_id: RunId,
    page: Annotated[int, Field(ge=1, le=100_000)] = 1,
) -> Json:
    """Read 20 examples that a model got wrong, with the right answers.

    For editors of the task, or everybody if a release has published texts and labels.
    """
    return {**await client.wrong(str(model_id), str(run_id), page)}


def add_tools(box: Toolbox) -> None:
    """Add the tools that submit and follow models."""
    box.add(read_quota, Quota)
    box.add(submit_predictions, Submitted, kind="add", scope="submit")
    box.add(submit_hub_model, Submitted, kind="add", scope="submit")
    # Nothing else reads a folder, so without one it could only refuse.
    if box.access.folder:
        box.add(submit_model_folder, Submitted, kind="add", scope="submit")
    box.add(list_models, Models, untrusted=["models"])
    # Names, notes and the log in its error are text of others, even where the model is your own.
    box.add(follow_model, Followed, untrusted=["results"])
    box.add(list_runs, Runs, untrusted=["runs"])
    box.add(read_log, Log, untrusted=["log"])
    box.add(list_wrong_answers, WrongAnswers, untrusted=["examples"])
