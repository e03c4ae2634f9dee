"""Writing an example on the page."""

import re

from django.test import Client

from annotation.models import Assignment, Example
from tests.web.conftest import HTMX

NLI_PROB = {"entailment": 0.91, "neutral": 0.07, "contradiction": 0.02}

URL = "/t/nli/write/"


def open_form(client, url=URL, text="The shop was open at ten.", **fields):
    """The values that the page's form would send, with a text filled in."""
    page = client.get(url)
    assert page.status_code == 200, page.content
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    names = ("attempt_key", "assignment", "goal")
    return {**{name: found.get(name, "") for name in names}, "hypothesis": text, **fields}


def goal_is(client, label, url=URL):
    """Make the goal this label, as if the server had drawn it."""
    client.get(url)
    Assignment.objects.filter(left_at__isnull=True).update(goal=label)


def stored(client, **kwargs):
    client.post(URL, open_form(client, **kwargs), **HTMX)
    return Example.objects.latest("pk")


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


def ok(response):
    assert response.status_code == 200, response.text
    return response
