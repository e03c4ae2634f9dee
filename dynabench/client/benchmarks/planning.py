"""Compare a folder with a site, and list the steps that make the site like the folder.

Planning sends dry runs and changes nothing. Each step compares again before it writes, so a plan
that was interrupted, or made twice, does nothing twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dynabench.client import types
from dynabench.client.benchmarks import lock
from dynabench.client.benchmarks.folder import BENCHMARK_FILE, CONFIG_FILE, Folder
from dynabench.client.benchmarks.member_steps import plan_members
from dynabench.client.benchmarks.problems import FileProblem, FolderError
from dynabench.client.benchmarks.round_steps import plan_opening, plan_round, plan_texts
from dynabench.client.benchmarks.site import ChangedMeanwhile, Site, read_site
from dynabench.client.benchmarks.steps import Kind, PlannedStep
from dynabench.client.benchmarks.target_steps import plan_target
from dynabench.client.benchmarks.text_checks import check_texts
from dynabench.client.client import DynabenchClient
from dynabench.client.errors import DynabenchError, Invalid, Refused

MAX_DIFF_LINES = 60
"""The maximum number of lines of a configuration's changes that a plan shows."""


@dataclass(frozen=True)
class Options:
    """What the person allows besides the folder's contents.

    overwrite: replace changes that others made to the configuration. prune: remove members and
    invitations that the folder lacks. invite_again: invite people whose invitation ended.
    send_secret: send the model's API key again.
    """

    overwrite: bool = False
    prune: bool = False
    invite_again: bool = False
    send_secret: bool = False


def plan_folder(
    client: DynabenchClient, folder: Folder, environment: dict[str, str], options: Options
) -> list[PlannedStep]:
    """Return the steps of a folder in the order in which they are made.

    environment: the environment variables, which hold API keys. Raises FolderError, NoRight.
    """
    site = read_site(client, folder.task)
    # A task that the person cannot see looks the same. The dry run of the creation tells.
    if site is None:
        return list(_plan_new_task(client, folder, environment))
    return list(_plan_existing_task(client, folder, site, environment, options))


def _plan_new_task(
    client: DynabenchClient, folder: Folder, environment: dict[str, str]
) -> Iterator[PlannedStep]:
    """Yield the steps of a task that the site does not have."""
    # 1. The site checks everything that it would check, and stores nothing.
    draft, refusal = _rehearse_creation(client, folder)
    # The site converts such a text, so a second `apply` would find another one than the file's.
    if draft["config_text"] != folder.config_text:
        message = (
            "This is a configuration of Dynabench 1.0 or 2.0. Convert it on the page New task of "
            "the site, and save the result here."
        )
        raise FolderError([FileProblem(CONFIG_FILE, message)])
    # 2. The texts, which only a round could check whole, and there is none yet.
    check_texts(folder, draft)
    # 3. The steps, in an order in which each finds what it needs.
    yield _build_creation(client, folder, draft, is_visible=not refusal)
    yield from plan_target(client, folder, None, environment, served_models=draft["served_models"])
    yield from plan_round(client, folder, None)
    yield from plan_texts(client, folder, None)
    yield from plan_members(client, folder, None)
    # Said once everything else is planned: the task is useful before it is approved.
    if refusal:
        yield PlannedStep(Kind.IMPOSSIBLE, BENCHMARK_FILE, f"show the task to everyone: {refusal}")
    yield from plan_opening(client, folder, None)


def _plan_existing_task(
    client: DynabenchClient,
    folder: Folder,
    site: Site,
    environment: dict[str, str],
    options: Options,
) -> Iterator[PlannedStep]:
    """Yield the steps of a task that the site has."""
    config_step = _plan_config(client, folder, site, is_overwriting=options.overwrite)
    yield config_step
    yield from plan_target(
        client, folder, site, environment, is_secret_sent_again=options.send_secret
    )
    yield from plan_round(client, folder, site)
    # Texts for a field that this plan adds cannot be checked before the field is there.
    yield from plan_texts(client, folder, site, is_config_changing=config_step.kind is Kind.CHANGE)
    yield from plan_members(
        client,
        folder,
        site,
        is_pruning=options.prune,
        is_inviting_again=options.invite_again,
    )
    yield from _plan_visibility(client, folder, site)
    yield from plan_opening(client, folder, site)


# the task


def _rehearse_creation(client: DynabenchClient, folder: Folder) -> tuple[types.MadeTask, str]:
    """Return the task that the site would create, and why it would not be visible, or "".

    Raises FolderError.
    """
    wishes = {"is_visible": False, **folder.visibility}
    try:
        return _try_creation(client, folder, wishes), ""
    except Refused as error:
        if error.code != "approval":
            raise
        # A private task needs no approval.
        return _try_creation(client, folder, wishes | {"is_visible": False}), error.message


def _try_creation(
    client: DynabenchClient, folder: Folder, wishes: dict[str, bool]
) -> types.MadeTask:
    """Return the task that the site would create. Raises FolderError, Refused for an approval."""
    try:
        return client.create_task(
            code=folder.task, config_text=folder.config_text, dry_run=True, **wishes
        )
    except Invalid as error:
        raise FolderError(build_problems(error)) from None
    except Refused as error:
        if error.code == "exists":
            message = (
                f"The site has a task {folder.task} that you can't see. Choose another name, or "
                "ask its owners to add you."
            )
            raise FolderError([FileProblem(BENCHMARK_FILE, message)]) from None
        raise


def build_problems(error: DynabenchError) -> list[FileProblem]:
    """Return the problems of a refused task, each with its file. Lines are in the messages."""
    problems = []
    for name, messages in error.fields.items():
        file = CONFIG_FILE if name == "config_text" else BENCHMARK_FILE
        for message in messages:
            # The site says "line 7, column 3, `goal`: …; …".
            if message.startswith("line "):
                place, _, rest = message.partition(":")
                problems.append(FileProblem(f"{file} {place}", rest.strip()))
            else:
                problems.append(FileProblem(file, message))
    return problems or [FileProblem(CONFIG_FILE, error.message)]


def _build_creation(
    client: DynabenchClient, folder: Folder, draft: types.MadeTask, *, is_visible: bool
) -> PlannedStep:
    """Return the step that creates the task."""
    wishes: dict[str, bool] = {"is_visible": False, **folder.visibility}
    wishes["is_visible"] = wishes["is_visible"] and is_visible

    def do() -> str:
        client.create_task(code=folder.task, config_text=folder.config_text, **wishes)
        # Read back: the version is a digest that only the site computes.
        version = client.config(folder.task)["version"]
        lock.store_applied_version(folder.path, client.server, folder.task, version)
        return ""

    audience = "visible to everyone" if wishes["is_visible"] else "visible to its members only"
    sentence = f"create the task {folder.task} ({draft['name']}), {audience}"
    notes = tuple(f"note: {note}" for note in draft["notes"])
    return PlannedStep(Kind.CREATE, CONFIG_FILE, sentence, notes, do)


# its configuration


def _plan_config(
    client: DynabenchClient, folder: Folder, site: Site, *, is_overwriting: bool
) -> PlannedStep:
    """Return the step that makes the site's configuration the folder's. Raises FolderError."""
    server, code, version = client.server, folder.task, site.config["version"]
    if site.config["config_text"] == folder.config_text:
        # Also where nothing changes: a stop after the last change may have left the file behind.
        def remember() -> str:
            lock.store_applied_version(folder.path, server, code, version)
            return ""

        return PlannedStep(Kind.UNCHANGED, CONFIG_FILE, "the configuration", do=remember)
    try:
        rehearsal = client.save_config(code, folder.config_text, version, dry_run=True)
    except Invalid as error:
        raise FolderError(build_problems(error)) from None
    # Without the two lines that name the files, which have none.
    diff_lines = rehearsal["diff"].splitlines()[2:]
    details = tuple(diff_lines[:MAX_DIFF_LINES])
    if len(diff_lines) > MAX_DIFF_LINES:
        details += (f"… and {len(diff_lines) - MAX_DIFF_LINES} more lines",)
    applied_version = lock.read_applied_version(folder.path, server, code)
    # Compared with what was last applied, and not only with what is there now: otherwise a
    # file that is older than another person's change would undo it.
    if applied_version != version and not is_overwriting:
        reason = "someone else has changed it on the site since this folder was last applied"
        if not applied_version:
            reason = "the task exists, and this folder has never been applied to it"
        remedies = (
            f"--fetch writes the site's configuration to {CONFIG_FILE}, so that git shows both",
            "--overwrite replaces it with the folder's",
        )
        sentence = f"change the configuration: {reason}"
        return PlannedStep(
            Kind.IMPOSSIBLE, CONFIG_FILE, sentence, (*remedies, *details), stops_all=True
        )

    def do() -> str:
        try:
            # The site compares the version once more, under its lock.
            saved = client.save_config(code, folder.config_text, version)
        except Refused as error:
            if error.code == "stale":
                raise ChangedMeanwhile("the configuration") from None
            raise
        lock.store_applied_version(folder.path, server, code, saved["version"])
        return ""

    return PlannedStep(Kind.CHANGE, CONFIG_FILE, "change the configuration", details, do)


# who can see it


def _plan_visibility(client: DynabenchClient, folder: Folder, site: Site) -> Iterator[PlannedStep]:
    """Yield a step for each setting of who can see the task and try its models."""
    words = {
        "is_visible": ("show the task to everyone", "show the task to its members only"),
        "allow_try_out": (
            "let people without an account try the models",
            "let only people with an account try the models",
        ),
    }
    current: dict[str, Any] = dict(site.task)
    for name, wish in folder.visibility.items():
        sentence = words[name][0 if wish else 1]
        if current[name] == wish:
            yield PlannedStep(Kind.UNCHANGED, BENCHMARK_FILE, sentence)
        elif reason := _find_visibility_obstacle(client, folder, site, name, is_wished=wish):
            yield PlannedStep(Kind.IMPOSSIBLE, BENCHMARK_FILE, f"{sentence}: {reason}")
        else:
            yield _build_visibility_step(client, folder, sentence, name, wish=wish)


def _find_visibility_obstacle(
    client: DynabenchClient, folder: Folder, site: Site, name: str, *, is_wished: bool
) -> str:
    """Return why a setting cannot be changed now; "" if it can."""
    if site.members is None:
        return "only owners can"
    if name == "is_visible" and is_wished and client.approval(folder.task)["is_needed"]:
        return "an administrator must approve the task first. Request it on its page Members"
    return ""


def _build_visibility_step(
    client: DynabenchClient, folder: Folder, sentence: str, name: str, *, wish: bool
) -> PlannedStep:
    """Return the step that changes who can see the task, or try its models."""

    def check() -> None:
        current: dict[str, Any] = dict(client.task(folder.task))
        if current[name] == wish:
            raise ChangedMeanwhile("who can see the task")

    def do() -> str:
        change: Any = {name: wish}
        client.change_task(folder.task, **change)
        return ""

    return PlannedStep(Kind.CHANGE, BENCHMARK_FILE, sentence, do=do, check=check)
