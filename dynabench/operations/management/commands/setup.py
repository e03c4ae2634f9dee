"""Set up a site for the public: no accounts to try, no process of its own."""

import json
import os
import secrets
import time
from argparse import ArgumentParser
from http.client import HTTPException
from typing import Any
from urllib.request import Request, urlopen

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from core.accounts.models import User
from core.env import env_secret
from core.mail.addresses import check_address
from core.versions import version
from dynabench.operations.management.installing import (
    find_first_rounds,
    install,
    lock_setup,
    open_round,
)
from dynabench.operations.soundness.outside import check_configured_services
from tasks.models import Round

RETRY_SECONDS = 3
MIN_SAME_ANSWERS = 10
"""Answers of this version in a row after which no process of the former one is left."""


def is_of_this_version(url: str) -> bool:
    """Return whether the web process at the URL has this version and is ready."""
    # The site answers only for its own names.
    host = settings.ALLOWED_HOSTS[0].lstrip(".*") or "localhost"  # ".example.org", "*"
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    try:
        request = Request(url, headers=headers)  # noqa: S310 - the operator's
        with urlopen(request, timeout=5) as answer:  # noqa: S310
            return bool(json.load(answer).get("version") == version())
    except (OSError, ValueError, HTTPException):
        return False


class Command(BaseCommand):
    help = (
        "Migrate, collect static files, install official tasks and starter models, make the first "
        "administrator (ADMIN_EMAIL, ADMIN_PASSWORD or ADMIN_PASSWORD_FILE), and open the first "
        "rounds whose models answer. It may run at any time, also while the site does."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._told: set[str] = set()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--wait", type=int, default=0, help="seconds for the models of first rounds to answer"
        )
        parser.add_argument(
            "--after",
            metavar="URL",
            help="the web's /healthz/: migrate, and go on once it always tells this version, as a "
            "former one cannot read new tasks",
        )

        parser.add_argument(
            "--no-ask",
            dest="ask",
            action="store_false",
            help="do not ask the mail server, bucket and sign-in provider whether they answer",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["after"]:
            with lock_setup():
                call_command("migrate", verbosity=0)  # the new processes wait for it
            self.stdout.write(f"Until {options['after']} always tells {version()}, this waits.")
            alike = 0
            while alike < MIN_SAME_ANSWERS:  # each answer may come from another process
                if is_of_this_version(options["after"]):
                    alike += 1
                else:
                    alike = 0
                time.sleep(RETRY_SECONDS)
        install(self.stdout.write)
        with lock_setup():
            self._administrator()
        if options["ask"]:
            self._ask()
        deadline = time.monotonic() + options["wait"]
        while self._silent_rounds() and time.monotonic() < deadline:
            time.sleep(RETRY_SECONDS)

    def _ask(self) -> None:
        """Print the configured services that do not respond. Setup continues."""
        for finding in check_configured_services():
            if finding.state == "bad":
                self.stderr.write(f"{finding.what}: {finding.message}")

    def _silent_rounds(self) -> list[Round]:
        """Open the first rounds; return those that could not be opened and print why."""
        return [round for round in find_first_rounds() if not open_round(round, self._once)]

    def _once(self, text: str) -> None:
        if text not in self._told:
            self.stdout.write(text)
        self._told.add(text)

    def _administrator(self) -> None:
        """Create the first superuser, unless there is one. Prints a generated password once."""
        email = os.environ.get("ADMIN_EMAIL", "")
        if User.objects.filter(is_superuser=True).exists():
            return
        if not email:
            self.stdout.write("There is no administrator: manage.py createsuperuser makes one.")
            return
        try:
            check_address(email)
        except ValidationError as error:
            raise CommandError(f"ADMIN_EMAIL={email!r}: {error.message}") from None
        # Of the operator, or made here and told once.
        chosen_password = env_secret("ADMIN_PASSWORD")
        password = chosen_password or secrets.token_urlsafe(12)
        User.objects.create_superuser(email, password)
        if chosen_password:
            self.stdout.write(f"{email} administers the site.")
        else:
            self.stdout.write(f"{email} administers the site, by {password}.")
