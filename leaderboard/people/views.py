"""The ranking of people who chose to be in it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.request import Request

from annotation.access import require_annotator
from core.accounts.models import Annotator
from core.web.downloads import respond_with_csv
from leaderboard.people.activity import count_team_week
from leaderboard.people.ranking import RankingLine, select_ranking_lines
from leaderboard.people.standings import list_standings, may_use_rankings
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_see


def find_ranking_reader(request: HttpRequest | Request, code: str) -> tuple[Task, Annotator]:
    """Return the task and the person. Raises Http404 for sensitive tasks and for paid people."""
    task = find_task(request, code)
    annotator = require_annotator(request, task, can_see)
    if task.is_sensitive or not may_use_rankings(annotator):
        raise Http404
    return task, annotator


def select_visible_lines(task: Task, annotator: Annotator) -> list[RankingLine]:
    """Return the lines that the person sees: none unless they chose to be in the ranking."""
    return (
        select_ranking_lines(list_standings([task]), annotator.pseudonym)
        if annotator.in_ranking
        else []
    )


def show_people(request: HttpRequest, code: str) -> HttpResponse:
    """Show the team's week and, to people in the ranking, the first ten and their neighbours."""
    task, annotator = find_ranking_reader(request, code)
    team = count_team_week(task) if task.config.context else None
    values = {
        "task": task,
        "me": annotator,
        "places": select_visible_lines(task, annotator),
        "team": team,
    }
    return render(request, "leaderboard/people.html", values)


def export_people_csv(request: HttpRequest, code: str) -> HttpResponse:
    """Export the lines of the ranking that the person sees, as CSV."""
    task, annotator = find_ranking_reader(request, code)
    columns = ["rank", "name", "rate", "low", "high", "verified_and_fooled", "tries"]
    rows: list[list[Any]] = [columns]
    for line in select_visible_lines(task, annotator):
        standing = line.standing
        rates = [f"{share:.4f}" for share in (standing.rate, standing.low, standing.high)]
        counts = [standing.fooled, standing.tries]
        rows.append([line.rank, standing.pseudonym, *rates, *counts])
    return respond_with_csv(rows, f"{task.code}-people.csv")
