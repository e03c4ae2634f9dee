"""Messages about names in a command that the server does not know, with the existing names."""

import argparse
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from uuid import UUID

from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import open_client
from dynabench.client.errors import DynabenchError, NotFound

MAX_NAMES = 10
"""The maximum number of names that a message lists."""
STATUS_HINT = "`dynabench status` lists your models."


def find_unknown_name(args: argparse.Namespace) -> str:
    """Return a sentence about the first name that the server does not know, or an empty string.

    Asks the server for the existing names.
    """
    try:
        return next(_find_unknown_names(args, open_client(args)), "")
    except DynabenchError:
        # The error that made us ask is reported anyway.
        return ""


def _find_unknown_names(args: argparse.Namespace, client: DynabenchClient) -> Iterator[str]:
    """Yield a sentence about each name that the server does not know.

    The task comes before its rounds, because an unknown task has no rounds to check.
    """
    options = vars(args)
    if community := options.get("community"):
        slugs = [entry["slug"] for entry in client.communities()]
        yield from _describe_missing_name("community", community, slugs)
    if task := options.get("task"):
        yield from _describe_missing_name("task", task, [entry["code"] for entry in client.tasks()])
        if name := options.get("set") or options.get("inputs"):
            names = [entry["name"] for entry in client.evaluation_sets(task)]
            yield from _describe_missing_name("evaluation set", name, names)
        if number := options.get("round"):
            numbers = [str(entry["number"]) for entry in client.rounds(task)]
            yield from _describe_missing_name("round", str(number), numbers)
    models = [options.get("model")] + (options.get("models") or [])
    for model in models:
        if isinstance(model, UUID) and not _has_model(client, model):
            yield f"Model {model} doesn't exist, or you can't see it. {STATUS_HINT}"


def _has_model(client: DynabenchClient, model: UUID) -> bool:
    """Return whether the server shows this account a model with this id."""
    try:
        client.model(str(model))
    except NotFound:
        return False
    return True


def _describe_missing_name(kind: str, name: str, names: list[str]) -> Iterator[str]:
    """Yield a sentence if the name is not among the existing ones."""
    if name not in names:
        similar = _list_similar_names(name, names)
        yield f"The {kind} {name!r} doesn't exist, or you can't see it. {similar}"


def _list_similar_names(name: str, names: Iterable[str]) -> str:
    """Return a sentence that lists up to MAX_NAMES existing names, the most similar first."""
    all_names = sorted(names)
    # With a cutoff of 0 the list is filled up with names that are less alike.
    closest_names = get_close_matches(name, all_names, MAX_NAMES, 0.0)
    name_list = ", ".join(closest_names) or "none"
    more = " …" if len(all_names) > len(closest_names) else ""
    return f"Available: {name_list}{more}."
