"""What a panel writes into the address of a campaign, and where it wants its people back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
NEVER_PATTERN = re.compile(r"(?!)")
UNFILLED_PATTERN = re.compile(r"[{\[<(%$#].*[}\]>)%#]", re.DOTALL)
"""A placeholder in a link that was opened as it was typed: {{%PROLIFIC_PID%}}, ${id}, %id%."""


class Arrival(NamedTuple):
    """A panel's identifiers of an arriving person, which authorise nothing.

    session: the panel's id of this participation. back: host to which Mechanical Turk's
    form is submitted.
    """

    id: str
    session: str = ""
    study: str = ""
    back: str = ""


@dataclass(frozen=True)
class Panel:
    """The names of a panel's URL parameters and the format of its ids.

    preview: pattern of `session` in a preview of the study.
    """

    id: str
    ids: re.Pattern[str]
    session: str = ""
    study: str = ""
    done: str = ""
    preview: re.Pattern[str] = NEVER_PATTERN

    def read(self, query: Mapping[str, str]) -> Arrival | None:
        """Return the arrival from a URL's query; None if its ids are missing or invalid."""
        ids = self._read_ids(query)
        if not all(map(self.ids.fullmatch, ids.values())):
            return None
        frame_host = query.get("turkSubmitTo", "").rstrip("/")
        if frame_host not in MTURK_HOSTS:
            # Anybody may write a link, and people's browsers would send the form there.
            frame_host = ""
        return Arrival(**ids, back=frame_host)

    def is_preview(self, query: Mapping[str, str]) -> bool:
        """Return whether the query belongs to a preview of the study."""
        ids = self._read_ids(query)
        if self.preview.fullmatch(ids.get("session", "")):
            return True
        return any(map(UNFILLED_PATTERN.fullmatch, ids.values()))

    def _read_ids(self, query: Mapping[str, str]) -> dict[str, str]:
        """Return the panel's ids from a query, by the field names of `Arrival`."""
        parameters = {"id": self.id, "session": self.session, "study": self.study}
        return {name: query.get(key, "") for name, key in parameters.items() if key}

    def way_back(self, url: str, code: str) -> str:
        """Return the panel's URL for people who leave with the code.

        Empty without a code or a URL.
        """
        address = self.done or url
        if not (address and code):
            return ""
        return address.replace("{code}", quote(code, safe=""))
