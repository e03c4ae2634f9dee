"""The ranking of people who chose to be in it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.request import Request

from annotation.access import require_annotator
from core.accounts.models import Annotator
from core.web.downloads import csv_file
from leaderboard.people.activity import count_team_week
from leaderboard.people.ranking import RankingLine, select_ranking_lines
from leaderboard.people.standings import list_standings, may_play
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_see


def enter_ranking(request: HttpRequest | Request, code: str) -> tuple[Task, Annotator]:
    """Return the task and the person. Raises Http404 for sensitive tasks and for paid people."""
    task = find_task(request, code)
    me = require_annotator(request, task, can_see)
    if task.is_sensitive or not may_play(me):
        raise Http404
    return task, me


def select_visible_lines(task: Task, me: Annotator) -> list[RankingLine]:
    """Return the lines that the person sees: none unless they chose to be in the ranking."""
    return select_ranking_lines(list_standings([task]), me.pseudonym) if me.in_ranking else []


def people(request: HttpRequest, code: str) -> HttpResponse:
    """Show the team's week and, to people in the ranking, the first ten and their neighbours."""
    task, me = enter_ranking(request, code)
    team = count_team_week(task) if task.config.context else None
    values = {"task": task, "me": me, "places": select_visible_lines(task, me), "team": team}
    return render(request, "leaderboard/people.html", values)


def people_csv(request: HttpRequest, code: str) -> HttpResponse:
    """Export the lines of the ranking that the person sees, as CSV."""
    task, me = enter_ranking(request, code)
    columns = ["rank", "name", "rate", "low", "high", "verified_and_fooled", "tries"]
    rows: list[list[Any]] = [columns]
    for place in select_visible_lines(task, me):
        standing = place.standing
        rates = [f"{share:.4f}" for share in (standing.rate, standing.low, standing.high)]
        counts = [standing.fooled, standing.tries]
        rows.append([place.rank, standing.pseudonym, *rates, *counts])
    return csv_file(rows, f"{task.code}-people.csv")
