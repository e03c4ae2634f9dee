"""The URLs by which people arrive from each panel, and those by which they return to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
NEVER_PATTERN = re.compile(r"(?!)")
UNFILLED_PATTERN = re.compile(r"[{\[<(%$#].*[}\]>)%#]", re.DOTALL)
"""An unfilled placeholder, from a link opened as written: {{%PROLIFIC_PID%}}, ${id}, %id%."""


class Arrival(NamedTuple):
    """A panel's ids of an arriving person. They are no proof of identity.

    id: the panel's id of the person. session: its id of this participation. study: its id of the
    study. back: the host to which Mechanical Turk's form is submitted.
    """

    id: str
    session: str = ""
    study: str = ""
    back: str = ""


@dataclass(frozen=True)
class Panel:
    """The names of a panel's URL parameters and the format of its ids.

    id, session, study: the names of the parameters. ids: the pattern of a valid id. done: the URL
    to return to, with `{code}`. preview: the pattern of `session` in a preview of the study.
    """

    id: str
    ids: re.Pattern[str]
    session: str = ""
    study: str = ""
    done: str = ""
    preview: re.Pattern[str] = NEVER_PATTERN

    def read(self, query: Mapping[str, str]) -> Arrival | None:
        """Return the arrival from a URL's query; None if its ids are missing or invalid."""
        panel_ids = self._read_ids(query)
        if not all(map(self.ids.fullmatch, panel_ids.values())):
            return None
        frame_host = query.get("turkSubmitTo", "").rstrip("/")
        if frame_host not in MTURK_HOSTS:
            # Anybody may write a link, and people's browsers would send the form there.
            frame_host = ""
        return Arrival(**panel_ids, back=frame_host)

    def is_preview(self, query: Mapping[str, str]) -> bool:
        """Return whether the query belongs to a preview of the study."""
        panel_ids = self._read_ids(query)
        if self.preview.fullmatch(panel_ids.get("session", "")):
            return True
        return any(map(UNFILLED_PATTERN.fullmatch, panel_ids.values()))

    def _read_ids(self, query: Mapping[str, str]) -> dict[str, str]:
        """Return the panel's ids from a query, by the field names of `Arrival`."""
        parameters = {"id": self.id, "session": self.session, "study": self.study}
        return {name: query.get(key, "") for name, key in parameters.items() if key}

    def build_way_back(self, url: str, code: str) -> str:
        """Return the panel's URL for people who leave with the code.

        Return "" without a code or a URL.
        """
        address = self.done or url
        if not (address and code):
            return ""
        return address.replace("{code}", quote(code, safe=""))
