"""Panels and laboratories that we have no adapter for."""

import re

from django.utils.translation import gettext_lazy as _

from dynabench.campaigns.ways.panels import Panel
from dynabench.campaigns.ways.registry import Way


class Link(Way, name="link"):
    """A link whose parameter `pid` holds any id."""

    title = _("a panel's link")
    place = 1
    panel = Panel("pid", re.compile(r"[A-Za-z0-9][\w.@:+=-]{0,99}", re.ASCII))
    placeholders = "?pid={{id}}"
    needs_completion_code = True
