"""Plan the model to fool: one that the site serves, one at a URL, or one that the site loads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dynabench.client import types
from dynabench.client.benchmarks.folder import TARGET_FILE, Folder, TargetFile
from dynabench.client.benchmarks.problems import FileProblem, FolderError
from dynabench.client.benchmarks.site import ChangedMeanwhile, Site
from dynabench.client.benchmarks.steps import Kind, PlannedStep
from dynabench.client.client import DynabenchClient
from dynabench.client.errors import Invalid, Refused

DEFAULTS_BY_ORIGIN: Mapping[str, Mapping[str, Any]] = {
    "url": {"adapter": "http", "options": {}},
    "source": {"adapter": "http", "revision": "", "options": {}, "serving": {}},
}
"""The settings of a model whose file leaves them out. A deleted line goes back to them."""
COPIED_SETTINGS = ("adapter", "source", "revision", "options", "serving")
"""The settings that a model takes over from one that the site serves."""
ADDRESS_SETTINGS = ("adapter", "url", "options")
"""Settings whose change makes the site forget the API key."""
MAX_NAMES = 10


def plan_target(
    client: DynabenchClient,
    folder: Folder,
    site: Site | None,
    environment: Mapping[str, str],
    *,
    served_models: Sequence[str] = (),
    is_secret_sent_again: bool = False,
) -> Iterator[PlannedStep]:
    """Yield the step of the folder's model, if it has one. Raises FolderError.

    site: None for a new task. served_models: for a new task, the models of the site that fit it, as
    TASK/NAME.
    """
    target = folder.target
    if target is None:
        return
    if site is None:
        if target.model:
            _choose_name(target, served_models)
        yield _build_creation(client, folder, target, environment)
        return
    stored_target = site.find_target(target.name)
    # Of a served model they are read from the site, and so follow it.
    wanted_settings = _find_settings(client, folder, target)
    if stored_target is None:
        _rehearse_creation(client, folder, target, wanted_settings)
        yield _build_creation(client, folder, target, environment)
        return
    yield _plan_change(
        client,
        folder,
        stored_target,
        wanted_settings,
        environment,
        is_secret_sent_again=is_secret_sent_again,
    )


def describe_target(target: TargetFile) -> str:
    """Return a target's name, and where it is."""
    place = target.model or target.settings.get("url") or target.settings.get("source")
    return f"{target.name} ({place})"


# which settings


def _find_settings(
    client: DynabenchClient, folder: Folder, target: TargetFile
) -> Mapping[str, Any]:
    """Return the settings that the target should have, without its name. Raises FolderError."""
    if not target.model:
        origin = "url" if "url" in target.settings else "source"
        return {**DEFAULTS_BY_ORIGIN[origin], **target.settings}
    models: dict[str, types.ServedModel] = {}
    for model in client.served_models(folder.task):
        models[f"{model['task']}/{model['name']}"] = model
    served_model: dict[str, Any] = {**models[_choose_name(target, list(models))]}
    return {name: served_model[name] for name in COPIED_SETTINGS}


def _choose_name(target: TargetFile, served_models: Sequence[str]) -> str:
    """Return the served model that the file means, as TASK/NAME. Raises FolderError.

    The file can leave out the task if only one model has the name.
    """
    # By its whole name or by the part after the slash.
    matching_names = []
    for name in served_models:
        if target.model in (name, name.partition("/")[2]):
            matching_names.append(name)
    if len(matching_names) == 1:
        return matching_names[0]
    if matching_names:
        message = f"Several models have this name. Write one of: {', '.join(matching_names)}."
    else:
        # With a cutoff of 0 the list is filled up with names that are less alike.
        closest_names = get_close_matches(target.model, served_models, MAX_NAMES, 0.0)
        name_list = ", ".join(closest_names) or "none"
        message = f"The site has no model {target.model!r} that fits. Available: {name_list}."
    raise FolderError([_build_problem(target, "model", message)])


def _build_problem(target: TargetFile, name: str, message: str) -> FileProblem:
    """Return a problem at the place of a setting, or of the whole file if it lacks the setting."""
    return FileProblem(TARGET_FILE, message, *target.places.get(name, (0, 0)))


def _build_problems(target: TargetFile, error: Invalid) -> list[FileProblem]:
    """Return the problems that the site found, each at the setting's place."""
    problems = []
    for name, messages in error.fields.items():
        # The file names a variable where the site gets the key itself.
        place = "secret_from" if name == "secret" else name
        for message in messages:
            problems.append(_build_problem(target, place, message))
    return problems or [FileProblem(TARGET_FILE, error.message)]


def _read_secret(target: TargetFile, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the API key as a setting; empty if the file names none. Raises FolderError."""
    if not target.secret_from:
        return {}
    secret = environment.get(target.secret_from, "").strip()
    if not secret:
        message = (
            f"Set the environment variable {target.secret_from} to the model's API key. It is "
            "sent to the site, which stores it encrypted, and to nobody else."
        )
        raise FolderError([_build_problem(target, "secret_from", message)])
    return {"secret": secret}


# a new one


def _rehearse_creation(
    client: DynabenchClient, folder: Folder, target: TargetFile, settings: Mapping[str, Any]
) -> None:
    """Raise FolderError if the site would refuse the new target."""
    try:
        body: Any = {"name": target.name, **settings, "dry_run": True}
        client.add_target_model(folder.task, **body)
    except (Invalid, Refused) as error:
        problems = [FileProblem(TARGET_FILE, error.message)]
        if error.fields:
            problems = _build_problems(target, Invalid(error.message, fields=error.fields))
        raise FolderError(problems) from None


def _build_creation(
    client: DynabenchClient, folder: Folder, target: TargetFile, environment: Mapping[str, str]
) -> PlannedStep:
    """Return the step that registers the target. Raises FolderError without its API key."""
    # Read while planning, so that a missing key stops everything before it begins.
    secret_settings = _read_secret(target, environment)

    def check() -> None:
        if any(each["name"] == target.name for each in client.target_models(folder.task)):
            raise ChangedMeanwhile(f"the model {target.name}")

    def do() -> str:
        # Found only now, for a new task has no list of served models while it is planned.
        settings: Any = {**_find_settings(client, folder, target), **secret_settings}
        try:
            stored_target = client.add_target_model(folder.task, name=target.name, **settings)
        except Invalid as error:
            raise FolderError(_build_problems(target, error)) from None
        return _describe_contact(stored_target)

    sentence = f"add the model {describe_target(target)}"
    return PlannedStep(Kind.CREATE, TARGET_FILE, sentence, _describe_secret(target), do, check)


def _describe_secret(target: TargetFile) -> tuple[str, ...]:
    """Return a line about the API key that is sent, if there is one."""
    if not target.secret_from:
        return ()
    return (f"with the API key in {target.secret_from}, for {target.settings['url']}",)


def _describe_contact(target: types.TargetModel) -> str:
    """Return a sentence if the model did not answer when the site tried it; otherwise ""."""
    contact = target["contact"]
    if not contact["reason"]:
        return ""
    return f"{target['name']} has not answered yet: {contact['detail'] or contact['reason']}"


# an existing one


def _plan_change(
    client: DynabenchClient,
    folder: Folder,
    stored_target: types.TargetModel,
    wanted_settings: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    is_secret_sent_again: bool,
) -> PlannedStep:
    """Return the step that gives a target the file's settings. Raises FolderError."""
    target = folder.target
    assert target
    stored_settings: dict[str, Any] = dict(stored_target)
    # Only what differs is sent: an administrator may have fixed other settings.
    differing_settings = _find_differences(wanted_settings, stored_settings)
    try:
        changes = _rehearse_change(client, folder, stored_settings, differing_settings)
    except (Invalid, Refused) as error:
        problems = _build_problems(target, Invalid(error.message, fields=error.fields))
        sentence = f"change the model {target.name}: {problems[0].message}"
        return PlannedStep(Kind.IMPOSSIBLE, TARGET_FILE, sentence)
    # The site forgets the API key if one of these changes.
    is_forgotten = bool(changes.keys() & set(ADDRESS_SETTINGS))
    secret_settings: dict[str, str] = {}
    if is_forgotten or is_secret_sent_again or not stored_target["has_secret"]:
        secret_settings = _read_secret(target, environment)
    if not changes and not secret_settings:
        return PlannedStep(Kind.UNCHANGED, TARGET_FILE, f"the model {describe_target(target)}")

    def check() -> None:
        for each in client.target_models(folder.task):
            # Only the settings that the file decides: others may change what it leaves out.
            is_same = each["id"] == stored_target["id"]
            if is_same and not _find_differences(stored_settings, dict(each), wanted_settings):
                return
        raise ChangedMeanwhile(f"the model {target.name}")

    def do() -> str:
        body: Any = {**changes, **secret_settings}
        changed_target = client.change_target_model(folder.task, stored_target["id"], **body)
        return _describe_contact(changed_target)

    details = [f"{name}: {stored_settings[name]!r} → {value!r}" for name, value in changes.items()]
    if secret_settings:
        details += _describe_secret(target)
    sentence = f"change the model {target.name}"
    return PlannedStep(Kind.CHANGE, TARGET_FILE, sentence, tuple(details), do, check)


def _find_differences(
    wanted_settings: Mapping[str, Any],
    stored_settings: Mapping[str, Any],
    names: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Return the wanted settings that differ from the stored ones. names: by default all."""
    differences = {}
    for name in wanted_settings if names is None else names:
        if stored_settings[name] != wanted_settings[name]:
            differences[name] = wanted_settings[name]
    return differences


def _rehearse_change(
    client: DynabenchClient,
    folder: Folder,
    stored_settings: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    """Return those changes that the site would store. Raises Invalid, Refused.

    The site may write a value differently, such as a URL, and so have it already.
    """
    if not changes:
        return {}
    body: Any = {**changes, "dry_run": True}
    rehearsed_target: Any = client.change_target_model(folder.task, stored_settings["id"], **body)
    stored_changes = {}
    for name, value in changes.items():
        if rehearsed_target[name] != stored_settings[name]:
            stored_changes[name] = value
    return stored_changes
