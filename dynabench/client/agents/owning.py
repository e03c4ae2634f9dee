"""Tools for owners and editors: configurations, rounds, targets and imports of texts."""

from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import Field

from dynabench.client.agents.access import Access
from dynabench.client.agents.answers import Answer
from dynabench.client.agents.arguments import (
    ConfigText,
    ContextFormat,
    Contexts,
    RoundNumber,
    SkipBad,
    TaskCode,
)
from dynabench.client.agents.toolbox import Toolbox
from dynabench.client.client import AsyncDynabenchClient

Json = dict[str, Any]
Targets = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100)]],
    Field(min_length=1, max_length=20, description="Names of targets, as list_targets has them."),
]
NewCode = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        max_length=40,
        description="Part of the task's URL, such as my-task. It can't be changed.",
    ),
]
ContextsPath = Annotated[
    str,
    Field(max_length=500, description="Instead of `text`: a file in the folder of --folder."),
]


class Draft(Answer):
    """A configuration that is valid, with notes and, for an existing task, the difference."""

    notes: list[Any] = Field(description="Warnings, and what was converted.")
    converted_text: str = Field(
        default="", description="What to use instead of a text of Dynabench 1.0 or 2.0."
    )
    diff: str = Field(default="", description="Against the stored text of `task`.")
    served_models: list[str] = Field(
        default=[], description="Models of other tasks that fit a new one, for `add_target`."
    )


class Configuration(Answer):
    """A task's configuration."""

    config_text: str
    version: str = Field(description="Pass it to `save_configuration`.")
    fixed: list[str] = Field(description="Parts that can no longer be changed.")
    warnings: list[Json]


class SavedConfiguration(Answer):
    """A configuration that was stored."""

    version: str
    diff: str
    warnings: list[Json]


class MadeTask(Answer):
    """A new task, which only its members see."""

    code: str
    url: str = Field(description="Where its owner goes on.")
    notes: list[Any]
    served_models: list[str] = Field(description="Models that fit it, for `add_target`.")


class OneRound(Answer):
    """A round and its plan."""

    round: Json


class TargetList(Answer):
    """The targets of a task, and how each last answered."""

    targets: list[Json]


class Target(Answer):
    """A target, and how it answered a test request."""

    target: Json


class Import(Answer):
    """What an import stored, or what it would store."""

    stored: int
    new: int
    error_count: int
    duplicate_count: int
    errors: list[Json] = Field(description="Each wrong line with its number and message.")


class Imports(Answer):
    """The imports of a round, newest first."""

    imports: list[Json]


class Undone(Answer):
    """An import that was undone."""

    undone: int


async def check_configuration(
    client: AsyncDynabenchClient,
    config_text: ConfigText,
    task: Annotated[
        TaskCode | None, Field(description="An existing task that is to get this text.")
    ] = None,
    new_code: Annotated[
        NewCode | None, Field(description="The code that a new task is to have.")
    ] = None,
) -> Json:
    """Check a draft of a task's configuration, and store nothing.

    An invalid draft is refused with line, key, reason and remedy of each error. Read the resources
    dynabench://guide/task-config and dynabench://schema/task-config first. With `task`, also
    checks what can no longer be changed. Otherwise checks whether you may create such a task.
    """
    if task is None:
        # A code that is free, for who has not chosen one.
        code = new_code or f"draft-{uuid4().hex[:12]}"
        made = await client.create_task(
            code=code, config_text=config_text, is_visible=False, dry_run=True
        )
        # The text itself would only be repeated.
        converted_text = "" if made["config_text"] == config_text else made["config_text"]
        return {
            "notes": made["notes"],
            "converted_text": converted_text,
            "served_models": made["served_models"],
        }
    # Nothing is stored, so the check is against whatever is there now.
    version = (await client.config(task))["version"]
    change = await client.save_config(task, config_text, version, dry_run=True)
    return {"notes": change["warnings"], "diff": change["diff"]}


async def read_configuration(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """Read a task's configuration as YAML, with its version. For editors of the task."""
    return {**await client.config(task)}


async def save_configuration(
    client: AsyncDynabenchClient,
    task: TaskCode,
    config_text: ConfigText,
    version: Annotated[str, Field(max_length=64, description="From `read_configuration`.")],
) -> Json:
    """Store a configuration that `check_configuration` accepted.

    Refused if someone changed the text since this version. The site keeps all earlier versions,
    and an editor can return to them.
    """
    change = await client.save_config(task, config_text, version)
    return {
        "version": change["version"],
        "diff": change["diff"],
        "warnings": change["warnings"],
    }


async def create_task(
    client: AsyncDynabenchClient,
    code: NewCode,
    config_text: ConfigText,
) -> Json:
    """Create a task from a configuration. Only its members see it until a person shows it.

    You own it, and its first round is a draft. Refused if the site doesn't let you create tasks.
    """
    # Explicitly private: an administrator's task would be visible to everybody.
    made = await client.create_task(code=code, config_text=config_text, is_visible=False)
    return {
        "code": code,
        "url": f"{client.server}/own/{code}/",
        "notes": made["notes"],
        "served_models": made["served_models"],
    }


async def list_targets(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """List a task's models to fool with their settings, and how each last answered."""
    return {"targets": await client.target_models(task)}


async def list_served_models(client: AsyncDynabenchClient, task: TaskCode) -> Json:
    """List models of this site's other tasks that fit a task. For its editors."""
    return {"targets": await client.served_models(task)}


async def add_target(
    client: AsyncDynabenchClient,
    task: TaskCode,
    name: Annotated[
        str, Field(min_length=1, max_length=100, description="Unique in its task; it stays.")
    ],
    served_model: Annotated[
        str | None,
        Field(
            pattern=r"^[-a-z0-9]+/[^/]{1,100}$",
            description="Use a model of `list_served_models`: its task and name, as nli/nli-2.",
        ),
    ] = None,
    url: Annotated[
        str | None,
        Field(pattern=r"^https?://", max_length=500, description="Or: where a model answers."),
    ] = None,
    adapter: Annotated[
        Literal["http", "openai_chat", "open_inference_v2", "dynalab"],
        Field(description="The protocol at the URL. Chat models need `options` with `model`."),
    ] = "http",
    options: Annotated[Json | None, Field(description="Settings of the adapter.")] = None,
) -> Json:
    """Add a model to fool, and send it one test request. `contact` says how it answered.

    If it needs an API key, a person adds it on the task's page: never ask for one.
    """
    # The schema can't say it.
    if bool(served_model) == bool(url):
        raise ValueError("Give either served_model or url.")
    settings: Any = {"url": url, "adapter": adapter, "options": options or {}}
    if served_model:
        settings = await _find_served_model(client, task, served_model)
    # Its own name last: a served model brings one along.
    return {"target": await client.add_target_model(task, **settings | {"name": name})}


async def _find_served_model(client: AsyncDynabenchClient, task: str, title: str) -> Json:
    """Return the settings of a model that the site serves. Raises ValueError."""
    models = {f"{each['task']}/{each['name']}": each for each in await client.served_models(task)}
    # With the names, so that no second call is needed to list them.
    if title not in models:
        raise ValueError(f"{title} does not fit {task}. Models that do: {', '.join(models)}.")
    # Its task is no setting of a target.
    return {name: value for name, value in models[title].items() if name != "task"}


async def create_round(
    client: AsyncDynabenchClient,
    task: TaskCode,
    targets: Targets,
    max_collected: Annotated[
        int | None, Field(ge=1, le=2**31, description="Close it after this number of examples.")
    ] = None,
) -> Json:
    """Create the next round of a task as a draft. A person opens it.

    A new task has a draft round already: use `change_round`.
    """
    plan = await client.create_round(task, targets=targets, max_collected=max_collected)
    return {"round": plan}


async def change_round(
    client: AsyncDynabenchClient,
    task: TaskCode,
    round: RoundNumber,
    targets: Targets | None = None,
    rule: Annotated[
        Literal["majority", "all", "any"] | None,
        Field(description="How many of its targets an example has to fool."),
    ] = None,
    description: Annotated[str | None, Field(max_length=2000)] = None,
    max_collected: Annotated[int | None, Field(ge=1, le=2**31)] = None,
) -> Json:
    """Change the plan of a round. What you leave out stays.

    Refused (`fixed`) for what an opened round can no longer change. A person opens the round, on
    its page or with `dynabench round TASK NUMBER --open`.
    """
    plan: Any = {
        "targets": targets,
        "rule": rule,
        "description": description,
        "max_collected": max_collected,
    }
    # None would mean "no limit" to the API, and not "as it is".
    given = {name: value for name, value in plan.items() if value is not None}
    return {"round": await client.change_round(task, round, **given)}


async def check_import(
    client: AsyncDynabenchClient,
    access: Access,
    task: TaskCode,
    round: RoundNumber,
    text: Contexts = "",
    format: ContextFormat = "jsonl",
    path: ContextsPath = "",
) -> Json:
    """Say what an import of texts into a round would store, and which lines are wrong."""
    # The client reads the format from the file's name.
    with access.hold_text(text, path, f"contexts.{format}") as file:
        return {**await client.import_contexts(task, round, file, dry_run=True)}


async def import_contexts(
    client: AsyncDynabenchClient,
    access: Access,
    task: TaskCode,
    round: RoundNumber,
    text: Contexts = "",
    format: ContextFormat = "jsonl",
    path: ContextsPath = "",
    skip_bad: SkipBad = False,
) -> Json:
    """Import texts that examples will be about into a round. `check_import` shows what it would do.

    The site has stored all of them when this returns. Texts that the round has already are not
    stored twice. `list_imports` has the import, and `undo_import` takes it back.
    """
    with access.hold_text(text, path, f"contexts.{format}") as file:
        return {**await client.import_contexts(task, round, file, skip_bad=skip_bad)}


async def list_imports(client: AsyncDynabenchClient, task: TaskCode, round: RoundNumber) -> Json:
    """List the imports of texts into a round."""
    return {"imports": await client.context_batches(task, round)}


async def undo_import(
    client: AsyncDynabenchClient,
    task: TaskCode,
    round: RoundNumber,
    import_id: Annotated[
        int, Field(ge=1, le=2**31, description="The import's ID in `list_imports`.")
    ],
) -> Json:
    """Take back an import. Refused (`used`) if one of its texts has been used."""
    # The API answers nothing.
    await client.undo_import(task, round, import_id)
    return {"undone": import_id}


def add_tools(box: Toolbox) -> None:
    """Add the tools of owners and editors."""
    box.add(check_configuration, Draft, kind="check", scope="own", whole=["converted_text"])
    # Whole, as it is stored again after a change.
    box.add(read_configuration, Configuration, untrusted=["config_text"], whole=["config_text"])
    box.add(save_configuration, SavedConfiguration, kind="change", scope="own")
    box.add(create_task, MadeTask, kind="add", scope="own")
    box.add(list_targets, TargetList, untrusted=["targets"])
    box.add(list_served_models, TargetList, untrusted=["targets"])
    box.add(add_target, Target, kind="add", scope="own", untrusted=["target"])
    box.add(create_round, OneRound, kind="add", scope="own")
    box.add(change_round, OneRound, kind="change", scope="own", is_idempotent=True)
    box.add(check_import, Import, kind="check", scope="own")
    # Texts that are there already are not stored twice.
    box.add(import_contexts, Import, kind="add", scope="own", is_idempotent=True)
    box.add(list_imports, Imports, untrusted=["imports"])
    box.add(undo_import, Undone, kind="change", scope="own")
