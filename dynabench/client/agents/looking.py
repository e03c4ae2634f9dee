"""Tools that look at tasks, rounds, boards and snapshots."""

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import Field

from dynabench.client.agents.answers import Answer
from dynabench.client.agents.arguments import ModelId, RoundNumber, SetName, TaskCode
from dynabench.client.agents.toolbox import Toolbox
from dynabench.client.client import AsyncDynabenchClient

Json = dict[str, Any]


class Account(Answer):
    """Whose token it is."""

    server: str
    pseudonym: str = Field(description="The name that others see.")
    token: Json | None = Field(description="With `scopes` and `expires_at`.")


class Tasks(Answer):
    """A list of tasks."""

    tasks: list[Json]


class WholeTask(Answer):
    """One task: its fields, labels, metrics and your role in it."""

    task: Json


class Rounds(Answer):
    """The rounds of a task, and its numbers."""

    rounds: list[Json]
    statistics: Json | None = Field(description="None for an arena.")


class EvaluationSets(Answer):
    """The evaluation sets of a task, and its released datasets."""

    evaluation_sets: list[Json]
    datasets: list[Json]


class Inputs(Answer):
    """Inputs of a set, without answers."""

    total: int
    inputs: list[Json] = Field(description="Each has an `id`, which an answer repeats.")


class Board(Answer):
    """A leaderboard."""

    board: Json


class Snapshots(Answer):
    """The snapshots of a board, which never change."""

    snapshots: list[Json]


class Snapshot(Answer):
    """A snapshot with its board, digest and citation."""

    snapshot: Json


class Comparison(Answer):
    """Two models on each set of their task."""

    comparison: Json


class Examples(Answer):
    """One page of a round's examples."""

    examples: list[Json]
    next_cursor: str | None = Field(description="Of the next page; None on the last one.")


async def read_account(client: AsyncDynabenchClient) -> Json:
    """Say whose token is used, which scopes it has and when it expires."""
    # The site too: agents mix up sites that look alike.
    return {"server": client.server, **await client.me()}


async def list_tasks(
    client: AsyncDynabenchClient,
    search: Annotated[str, Field(max_length=100, description="Words in name or summary.")] = "",
) -> Json:
    """List the tasks that you may see."""
    words = search.casefold().split()
    # The client's list is whole: sites have hundreds of tasks at most.
    tasks = []
    for task in await client.tasks():
        text = f"{task['code']} {task['name']} {task['summary']}".casefold()
        if all(word in text for word in words):
            tasks.append(task)
    return {"tasks": tasks}


async def read_task(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """Read a task: instructions, fields, labels, metrics, and your role in it."""
    return {"task": await client.task(task)}


async def list_rounds(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """List a task's rounds with their state and targets, and the task's numbers.

    Draft rounds are shown to members only.
    """
    # The statistics are about examples, which an arena lacks.
    is_arena = not (await client.task(task))["input"]
    statistics = None if is_arena else await client.statistics(task)
    return {"rounds": await client.rounds(task), "statistics": statistics}


async def list_evaluation_sets(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """List a task's evaluation sets and released datasets."""
    # Together, because a set is often made of a released round.
    sets = await client.evaluation_sets(task)
    return {"evaluation_sets": sets, "datasets": await client.datasets(task)}


async def read_inputs(
    client: AsyncDynabenchClient,
    task: TaskCode,
    evaluation_set: SetName,
    start: Annotated[int, Field(ge=0, description="Rows to skip.")] = 0,
    limit: Annotated[int, Field(ge=1, le=200, description="Rows to return.")] = 50,
) -> Json:
    """Read the inputs of an evaluation set, to make predictions for `submit_predictions`."""
    rows: list[Json] = []
    total = 0
    with tempfile.TemporaryDirectory(prefix="dynabench-mcp-") as folder:
        # The API has the inputs as one file, without pages.
        path = await client.download_inputs(task, evaluation_set, to=Path(folder))
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                # Only these rows are parsed: a set can have a million.
                if start <= total < start + limit:
                    rows.append(json.loads(line))
                total += 1
    return {"total": total, "inputs": rows}


async def read_board(
    client: AsyncDynabenchClient,
    task: TaskCode,
    mode: Annotated[
        Literal["anchored", "robust", "classic"] | None,
        Field(description="The score's formula. Default: the board's own."),
    ] = None,
    weights: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=8)]] | None,
        Field(description="Weights of metrics, from 0 to 8. Default: the owner's."),
    ] = None,
    is_mine_included: Annotated[
        bool, Field(description="Also show your own unpublished models.")
    ] = False,
) -> Json:
    """Read a task's leaderboard: its models in order, with scores, intervals and ranks."""
    # Weights are for this look only. A saved weighting is made on the page.
    board = await client.leaderboard(task, weights, mode=mode, mine=is_mine_included)
    return {"board": board}


async def list_snapshots(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """List the snapshots of a task's board."""
    return {"snapshots": await client.snapshots(task)}


async def read_snapshot(
    client: AsyncDynabenchClient, task: TaskCode, number: Annotated[int, Field(ge=1, le=1_000_000)]
) -> Json:
    """Read a snapshot: its board, SHA-256, changes since the one before, and BibTeX."""
    return {"snapshot": await client.snapshot(task, number)}


async def compare_models(client: AsyncDynabenchClient, a: ModelId, b: ModelId) -> Json:
    """Compare two models of a task, and say which differences may be due to chance."""
    return {"comparison": await client.compare(str(a), str(b))}


async def list_examples(
    client: AsyncDynabenchClient,
    task: TaskCode,
    round: RoundNumber,
    cursor: Annotated[
        str, Field(pattern=r"^[-\w=%+/]*$", max_length=500, description="From the page before.")
    ] = "",
) -> Json:
    """Read 20 examples of a round, with answers and votes. For the task's members.

    Which of them you see depends on your role.
    """
    # A page at a time: rounds have tens of thousands.
    params = {"page_size": 20} | ({"cursor": cursor} if cursor else {})
    page = await client.request("GET", f"/tasks/{task}/rounds/{round}/examples/", params=params)
    return {"examples": page["results"], "next_cursor": _read_cursor(page["next"])}


def _read_cursor(link: str | None) -> str | None:
    """Return the cursor in the link to the next page."""
    # The link has the host that the server knows, which may be one behind a proxy.
    return parse_qs(urlsplit(link).query)["cursor"][0] if link else None


def add_tools(box: Toolbox) -> None:
    """Add the tools that look."""
    box.add(read_account, Account)
    box.add(list_tasks, Tasks, untrusted=["tasks"])
    box.add(read_task, WholeTask, untrusted=["task"])
    box.add(list_rounds, Rounds, untrusted=["rounds"])
    box.add(list_evaluation_sets, EvaluationSets, untrusted=["evaluation_sets", "datasets"])
    box.add(read_inputs, Inputs, untrusted=["inputs"])
    box.add(list_examples, Examples, untrusted=["examples"])
    box.add(read_board, Board, untrusted=["board"])
    box.add(list_snapshots, Snapshots, untrusted=["snapshots"])
    box.add(read_snapshot, Snapshot, untrusted=["snapshot"])
    box.add(compare_models, Comparison, untrusted=["comparison"])
