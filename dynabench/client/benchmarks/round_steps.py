"""Plan a round: its plan, its texts, and whether it opens."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from dynabench.client import types
from dynabench.client.benchmarks.folder import ROUND_FILE, Folder, RoundFile, parse_time
from dynabench.client.benchmarks.problems import FileProblem, FolderError
from dynabench.client.benchmarks.site import ChangedMeanwhile, Site
from dynabench.client.benchmarks.steps import Kind, PlannedStep, count_texts
from dynabench.client.client import DynabenchClient
from dynabench.client.errors import DynabenchError, Invalid, Refused

ENDED_STATES = ("closed", "released")
LIVE_STATES = ("open", "paused")


# its plan


def plan_round(client: DynabenchClient, folder: Folder, site: Site | None) -> Iterator[PlannedStep]:
    """Yield the step of the folder's round, if it describes one. Raises FolderError."""
    round_file = folder.round
    if round_file is None:
        return
    if site and site.rounds is None:
        yield PlannedStep(Kind.IMPOSSIBLE, ROUND_FILE, "plan a round: arenas have no rounds")
        return
    stored_round = site.find_round(round_file.number) if site else None
    if stored_round is None:
        last_number = (
            max((round["number"] for round in site.rounds or ()), default=0) if site else 0
        )
        if round_file.number != last_number + 1:
            message = f"The next round of the task is {last_number + 1}."
            raise FolderError([_build_problem(round_file, "number", message)])
        if site:
            _rehearse(client, folder, round_file, None, round_file.plan)
        yield _build_step(client, folder, round_file, None, {})
        return
    yield _plan_change(client, folder, site, round_file, stored_round)


def _plan_change(
    client: DynabenchClient,
    folder: Folder,
    site: Site | None,
    round_file: RoundFile,
    stored_round: types.Round,
) -> PlannedStep:
    """Return the step that gives a round the file's plan. Raises FolderError."""
    changes = _find_changes(folder, round_file, stored_round)
    if not changes:
        return PlannedStep(Kind.UNCHANGED, ROUND_FILE, f"the plan of round {round_file.number}")
    # Said in the folder's words. The site would only say that the setting is fixed.
    if "targets" in changes and stored_round["opened_at"]:
        sentence = (
            f"change the models of round {round_file.number}: it was opened with "
            f"{', '.join(stored_round['targets']) or 'no model'}. Plan a new round"
        )
        return PlannedStep(Kind.IMPOSSIBLE, ROUND_FILE, sentence)
    # A model that this plan adds is not on the site yet.
    rehearsed_changes = dict(changes)
    if folder.target and not (site and site.find_target(folder.target.name)):
        rehearsed_changes.pop("targets", None)
    try:
        _rehearse(client, folder, round_file, stored_round, rehearsed_changes)
    except Refused as error:
        sentence = f"change the plan of round {round_file.number}: {error.message}"
        return PlannedStep(Kind.IMPOSSIBLE, ROUND_FILE, sentence)
    return _build_step(client, folder, round_file, stored_round, changes)


def _find_changes(
    folder: Folder, round_file: RoundFile, stored_round: types.Round | None
) -> dict[str, Any]:
    """Return the settings of the file that the site's round does not have.

    The folder's model is added to the round's models, and no other one is removed.
    """
    changes: dict[str, Any] = {}
    stored_plan: dict[str, Any] = dict(stored_round or {})
    for name, value in round_file.plan.items():
        if stored_round is None or not _is_equal(name, stored_plan[name], value):
            changes[name] = value
    # Colleagues may have added models on the page.
    targets = list(stored_plan.get("targets", ()))
    if folder.target and folder.target.name not in targets:
        changes["targets"] = [*targets, folder.target.name]
    return changes


def _is_equal(name: str, stored_value: Any, value: Any) -> bool:
    """Return whether a stored setting has a value. The same time can be written in many ways."""
    if name == "ends_at":
        return _read_time(stored_value) == _read_time(value)
    if name == "description":
        # A text of several lines ends with a line break, which forms may drop.
        return str(stored_value).rstrip() == str(value).rstrip()
    return bool(stored_value == value)


def _read_time(value: str | None) -> datetime | None:
    return parse_time(value) if value else None


def _rehearse(
    client: DynabenchClient,
    folder: Folder,
    round_file: RoundFile,
    stored_round: types.Round | None,
    changes: Mapping[str, Any],
) -> None:
    """Send a dry run of the plan. Raises FolderError, Refused."""
    body: Any = {**changes, "dry_run": True}
    try:
        if stored_round is None:
            client.create_round(folder.task, number=round_file.number, **body)
        elif changes:
            client.change_round(folder.task, round_file.number, **body)
    except Invalid as error:
        raise FolderError(_list_problems(round_file, error)) from None


def _build_problem(round_file: RoundFile, name: str, message: str) -> FileProblem:
    """Return a problem at the place of a setting."""
    return FileProblem(ROUND_FILE, message, *round_file.places.get(name, (0, 0)))


def _list_problems(round_file: RoundFile, error: DynabenchError) -> list[FileProblem]:
    """Return the problems that the site found, each at the setting's place."""
    problems = []
    for name, messages in error.fields.items():
        problems += [_build_problem(round_file, name, message) for message in messages]
    return problems or [FileProblem(ROUND_FILE, error.message)]


def _build_step(
    client: DynabenchClient,
    folder: Folder,
    round_file: RoundFile,
    stored_round: types.Round | None,
    changes: Mapping[str, Any],
) -> PlannedStep:
    """Return the step that plans the round, or changes its plan."""
    number = round_file.number

    def find_round() -> types.Round | None:
        rounds = client.rounds(folder.task)
        return next((round for round in rounds if round["number"] == number), None)

    def check() -> None:
        current_round = find_round()
        # A new task comes with its first round, so a new round may be there by now.
        if stored_round and current_round != stored_round:
            raise ChangedMeanwhile(f"round {number}")

    def do() -> str:
        current_round = find_round()
        # Compared again, so that a step that a stop cut off is not made twice.
        body: Any = _find_changes(folder, round_file, current_round)
        if current_round is None:
            # The site refuses it if somebody else plans this round at this moment.
            client.create_round(folder.task, number=number, **body)
        elif body:
            client.change_round(folder.task, number, **body)
        return ""

    if stored_round is None:
        with_target = f" with the model {folder.target.name}" if folder.target else ""
        return PlannedStep(
            Kind.CREATE, ROUND_FILE, f"plan round {number}{with_target}", (), do, check
        )
    stored_plan: dict[str, Any] = dict(stored_round)
    details = []
    for name, value in changes.items():
        details.append(f"{name}: {stored_plan[name]!r} → {value!r}")
    sentence = f"change the plan of round {number}"
    return PlannedStep(Kind.CHANGE, ROUND_FILE, sentence, tuple(details), do, check)


# its texts


def plan_texts(
    client: DynabenchClient, folder: Folder, site: Site | None, *, is_config_changing: bool = False
) -> Iterator[PlannedStep]:
    """Yield the step that imports the folder's texts into its round. Raises FolderError."""
    path = folder.texts_path
    if path is None:
        return
    if folder.round is None:
        sentence = f"import texts: add {ROUND_FILE}, which plans the round that gets them"
        yield PlannedStep(Kind.IMPOSSIBLE, path.name, sentence)
        return
    round = site.find_round(folder.round.number) if site else None
    if round is None:
        counted_texts = "the texts"
        if folder.text_lines is not None:
            counted_texts = count_texts(len(folder.text_lines))
        sentence = f"import {counted_texts} into round {folder.round.number}"
        yield _build_import(client, folder, sentence)
        return
    # The site takes no more texts, and so does not compare them either.
    if round["state"] in ENDED_STATES:
        sentence = f"the texts of round {round['number']}, which has ended"
        yield PlannedStep(Kind.UNCHANGED, path.name, sentence)
        return
    yield _compare_texts(
        client, folder, path, round["number"], is_config_changing=is_config_changing
    )


def _compare_texts(
    client: DynabenchClient, folder: Folder, path: Path, number: int, *, is_config_changing: bool
) -> PlannedStep:
    """Return the step that imports the texts that a round lacks. Raises FolderError."""
    try:
        rehearsal = client.import_contexts(folder.task, number, path, dry_run=True)
    except (Invalid, Refused) as error:
        raise FolderError(_list_text_problems(path.name, error)) from None
    # Its lines may name a field that the step before adds.
    if rehearsal["error_count"] and is_config_changing:
        sentence = f"import texts into round {number}, once the configuration has changed"
        return _build_import(client, folder, sentence)
    if rehearsal["error_count"]:
        problems = []
        for error_line in rehearsal["errors"]:
            problems.append(FileProblem(path.name, error_line["message"], error_line["line"]))
        raise FolderError(problems)
    if not rehearsal["new"]:
        sentence = f"{count_texts(rehearsal['duplicate_count'])} of round {number}"
        return PlannedStep(Kind.UNCHANGED, path.name, sentence)
    sentence = f"import {count_texts(rehearsal['new'])} into round {number}"
    if rehearsal["duplicate_count"]:
        sentence += f", which has {rehearsal['duplicate_count']} of the file already"
    return _build_import(client, folder, sentence)


def _list_text_problems(name: str, error: DynabenchError) -> list[FileProblem]:
    """Return the problems of a refused file, each with its line if the message begins with one."""
    problems = []
    for message in error.fields.get("text") or [error.message]:
        place, _, rest = message.partition(": ")
        words = place.split()
        if len(words) == 2 and words[0] == "line" and words[1].isdecimal():
            problems.append(FileProblem(name, rest, int(words[1])))
        else:
            problems.append(FileProblem(name, message))
    return problems


def _build_import(client: DynabenchClient, folder: Folder, sentence: str) -> PlannedStep:
    """Return the step that imports the texts. The site skips those that the round has."""
    path, round_file = folder.texts_path, folder.round
    assert path
    assert round_file

    def do() -> str:
        try:
            client.import_contexts(folder.task, round_file.number, path)
        except Invalid as error:
            raise FolderError(_list_text_problems(path.name, error)) from None
        return ""

    return PlannedStep(Kind.CREATE, path.name, sentence, do=do)


# its opening


def plan_opening(
    client: DynabenchClient, folder: Folder, site: Site | None
) -> Iterator[PlannedStep]:
    """Yield the step that opens the folder's round, if the folder says so. It opens only once."""
    round_file = folder.round
    if round_file is None or not round_file.is_open or (site and site.rounds is None):
        return
    number = round_file.number
    round = site.find_round(number) if site else None
    # Once it was open, its owners decide when it pauses, ends or opens again.
    if round and (round["opened_at"] or round["opening_since"]):
        yield PlannedStep(Kind.UNCHANGED, ROUND_FILE, _describe_opened(round))
        return
    if reasons := _list_missing_parts(client, folder, site, round):
        sentence = f"open round {number}: {', and '.join(reasons)}"
        yield PlannedStep(Kind.IMPOSSIBLE, ROUND_FILE, sentence)
        return

    def check() -> None:
        for current_round in client.rounds(folder.task):
            if current_round["number"] == number and current_round["opened_at"]:
                raise ChangedMeanwhile(f"the state of round {number}")

    def do() -> str:
        opened_round = client.set_round_state(folder.task, number, "open")
        if opened_round["opening_since"]:
            return f"Round {number} opens as soon as its models are loaded."
        return ""

    yield PlannedStep(Kind.CHANGE, ROUND_FILE, f"open round {number}", do=do, check=check)


def _describe_opened(round: types.Round) -> str:
    """Return what became of a round that was opened, or is opening."""
    if not round["opened_at"]:
        return f"round {round['number']} opens as soon as its models are loaded"
    if round["state"] == "open":
        return f"round {round['number']} is open"
    return f"round {round['number']} was opened before, and is {round['state']} now"


def _list_missing_parts(
    client: DynabenchClient, folder: Folder, site: Site | None, round: types.Round | None
) -> list[str]:
    """Return what the round lacks before it can open."""
    reasons = []
    has_texts = folder.texts_path is not None
    if site and round and not has_texts:
        # Imported on the page. A task without context fields needs none.
        batches = client.context_batches(folder.task, round["number"])
        has_texts = any(batch["contexts"] for batch in batches) or not site.task["context"]
    if not has_texts:
        reasons.append("it has no texts (add texts.jsonl)")
    for other_round in (site.rounds if site else None) or ():
        if other_round["state"] in LIVE_STATES:
            reasons.append(f"round {other_round['number']} is still {other_round['state']}")
    # What the site found when it last tried the model. It tries again when the round opens.
    target = site.find_target(folder.target.name) if site and folder.target else None
    if target and target["contact"]["reason"]:
        words = target["contact"]["detail"] or target["contact"]["reason"]
        reasons.append(f"its model {target['name']} does not answer ({words})")
    return reasons
