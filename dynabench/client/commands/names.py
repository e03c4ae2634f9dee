"""Which name of a command the server does not know, and what else there is."""

import argparse
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from uuid import UUID

from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import client_for
from dynabench.client.errors import DynabenchError, NotFound

MOST = 10
STATUS = "`dynabench status` lists yours."


def unknown_name(args: argparse.Namespace) -> str:
    """Return a sentence about the first name that is not there; empty where none is known to lack.

    Asks the server for what there is.
    """
    try:
        return next(_lacking(args, client_for(args)), "")
    except DynabenchError:  # the error that made us ask is told
        return ""


def _lacking(args: argparse.Namespace, client: DynabenchClient) -> Iterator[str]:
    told = vars(args)
    if community := told.get("community"):
        known = [one["slug"] for one in client.communities()]
        yield from _without("community", community, known)
    if task := told.get("task"):
        yield from _without("task", task, [one["code"] for one in client.tasks()])
        if name := told.get("set") or told.get("inputs"):
            known = [one["name"] for one in client.evaluation_sets(task)]
            yield from _without("evaluation set", name, known)
        if number := told.get("round"):
            rounds = [str(one["number"]) for one in client.rounds(task)]
            yield from _without("round", str(number), rounds)
    for model in (told.get("model"), *(told.get("models") or ())):
        if isinstance(model, UUID) and not _is_there(client, model):
            yield f"There is no model {model}, or it is not for you. {STATUS}"


def _is_there(client: DynabenchClient, model: UUID) -> bool:
    try:
        client.model(str(model))
    except NotFound:
        return False
    return True


def _without(kind: str, name: str, known: list[str]) -> Iterator[str]:
    if name not in known:
        yield f"There is no {kind} {name!r} here, or it is not for you. {_others(name, known)}"


def _others(name: str, known: Iterable[str]) -> str:
    """The names that there are, those that look most alike first."""
    names = sorted(known)
    near = get_close_matches(name, names, MOST, 0.0)
    shown = ", ".join(near) or "none"
    return f"There are {shown}{' …' if len(names) > len(near) else ''}."
