"""The way for panels and laboratories that have no adapter of their own."""

import re

from django.utils.translation import gettext_lazy as _

from dynabench.campaigns.ways.panels import Panel
from dynabench.campaigns.ways.registry import Way


class PanelLink(Way, name="link"):
    """A way to recruit people by a link whose parameter `pid` is the panel's id of the person."""

    title = _("Panel link")
    place = 1
    panel = Panel("pid", re.compile(r"[A-Za-z0-9][\w.@:+=-]{0,99}", re.ASCII))
    placeholders = "?pid={{id}}"
    needs_completion_code = True
