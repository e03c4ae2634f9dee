"""The loop over HTTP, as two people walk it: one writes an example, another judges it.

python scripts/walk.py https://HOST:PORT EMAIL FILE_WITH_PASSWORD
"""

import re
import sys
import time
from pathlib import Path
from uuid import uuid4

import httpx

TASK = "/t/nli"
WAIT_SECONDS = 420
TRIES = 12
"""Examples until one fools the model: its words agree with the context, whatever the goal."""


class Person:
    """A browser without JavaScript."""

    def __init__(self, site: str) -> None:
        # Ours is a certificate of Caddy's own authority; who walks another site's checks it.
        self._client = httpx.Client(
            base_url=site, verify="localhost" not in site, follow_redirects=True, timeout=60
        )

    def get(self, path: str) -> str:
        """A page. Raises httpx.HTTPStatusError and, where nothing answers, httpx.TransportError."""
        return self._client.get(path).raise_for_status().text

    def submit(self, path: str, **values: str) -> str:
        """The page that the form at a path leads to, with its hidden fields and these values."""
        hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.get(path))
        answer = self._client.post(
            path, data=dict(hidden) | values, headers={"Referer": str(self._client.base_url)}
        )
        return answer.raise_for_status().text


def wait_for(site: str, email: str, password: str) -> Person:
    """The administrator, signed in at a site whose first round is open."""
    stop, person = time.monotonic() + WAIT_SECONDS, Person(site)
    while True:
        try:
            person.submit("/accounts/login/", login=email, password=password)
            if 'name="attempt_key"' in person.get(f"{TASK}/write/"):
                return person
            trouble = "its first round is not open"
        except httpx.HTTPError as error:
            trouble = str(error)
        if time.monotonic() > stop:
            raise SystemExit(f"The site is not ready: {trouble}")
        time.sleep(2)


def main(site: str, email: str, password_file: str) -> None:
    writer, judge = wait_for(site, email, Path(password_file).read_text().strip()), Person(site)
    new = {"email": f"{uuid4().hex}@example.org", "password": uuid4().hex}
    judge.submit("/accounts/signup/", email=new["email"], password1=new["password"])
    for number in range(TRIES):
        writer.submit(f"{TASK}/write/", hypothesis=f"There is something here, number {number}.")
        page = judge.get(f"{TASK}/judge/")
        if found := re.search(r'name="example" value="([0-9a-f-]+)"', page):
            time.sleep(1)  # earlier than a person can look, a vote is refused
            judge.submit(f"{TASK}/judge/", example=found[1], answer="label:neutral")
            print(f"Written, fooled at try {number + 1}, judged.")
            return
    raise SystemExit(f"None of {TRIES} examples fooled the model.")


if __name__ == "__main__":
    main(*sys.argv[1:])
