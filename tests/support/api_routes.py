"""Every address of the API, with how to call it."""

import pytest
from django.urls import URLPattern

from core.web.throttles import ScopeThrottle
from dynabench import api as root
from tests.api.world import make_world

METHODS = ("get", "post", "put", "patch", "delete")


def routes(patterns=root.urlpatterns, before=""):
    """(METHOD, address as it is written) of everything below /api/v1/."""
    for one in patterns:
        address = before + str(one.pattern)
        if isinstance(one, URLPattern):
            view = getattr(one.callback, "cls", None)
            assert view, address
            yield from ((m.upper(), address) for m in METHODS if hasattr(view, m))
        else:
            yield from routes(one.url_patterns, address)


@pytest.fixture
def world(db, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(ScopeThrottle, "allow_request", lambda self, request, view: True)
    return make_world()


def address_of(world, route):
    """The address of what is there; released data are of the first round, the rest of the live.

    Models and examples are the owner's.
    """
    parts = route.split("/")
    for place, part in enumerate(parts):
        if part.startswith("<"):
            ids = world.known(parts, place)
            is_last = parts[place - 1] == "examples" or "datasets" in parts[place + 1 :]
            parts[place] = str(ids[-1] if is_last else ids[0])
    return "/api/v1/" + "/".join(parts)
