"""Set up a public site: no sample accounts, and no processes that keep running."""

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
from core.env import read_env_secret
from core.mail.addresses import check_address
from core.versions import get_version
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
"""The number of consecutive responses by this version after which no older process is left."""


def runs_this_version(url: str) -> bool:
    """Return whether the web process at the URL has this version and is ready."""
    # The site answers only for its own names.
    host = settings.ALLOWED_HOSTS[0].lstrip(".*") or "localhost"  # ".example.org", "*"
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    try:
        request = Request(url, headers=headers)  # noqa: S310 - the operator's
        with urlopen(request, timeout=5) as answer:  # noqa: S310
            return bool(json.load(answer).get("version") == get_version())
    except (OSError, ValueError, HTTPException):
        return False


class Command(BaseCommand):
    help = (
        "Migrate, collect static files, install official tasks and starter models, create "
        "the first administrator (ADMIN_EMAIL, ADMIN_PASSWORD or ADMIN_PASSWORD_FILE), and "
        "open the first rounds whose models are ready. You can run it at any time."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._printed_texts: set[str] = set()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--wait", type=int, default=0, help="seconds to wait for the models of first rounds"
        )
        parser.add_argument(
            "--after",
            metavar="URL",
            help=(
                "URL of /healthz/. After migrating, wait until all web processes run this "
                "version, because older ones can't read new tasks"
            ),
        )

        parser.add_argument(
            "--no-ask",
            dest="ask",
            action="store_false",
            help="don't check the mail server, bucket and sign-in provider",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["after"]:
            with lock_setup():
                call_command("migrate", verbosity=0)  # the new processes wait for it
            self.stdout.write(f"Waiting until {options['after']} always reports {get_version()}.")
            same_count = 0
            while same_count < MIN_SAME_ANSWERS:  # each answer may come from another process
                if runs_this_version(options["after"]):
                    same_count += 1
                else:
                    same_count = 0
                time.sleep(RETRY_SECONDS)
        install(self.stdout.write)
        with lock_setup():
            self._make_administrator()
        if options["ask"]:
            self._check_services()
        deadline = time.monotonic() + options["wait"]
        while self._find_silent_rounds() and time.monotonic() < deadline:
            time.sleep(RETRY_SECONDS)

    def _check_services(self) -> None:
        """Print which configured services do not respond. The setup continues."""
        for finding in check_configured_services():
            if finding.state == "bad":
                self.stderr.write(f"{finding.what}: {finding.message}")

    def _find_silent_rounds(self) -> list[Round]:
        """Open the first rounds. Return the rounds that could not be opened, and print why."""
        return [round for round in find_first_rounds() if not open_round(round, self._print_once)]

    def _print_once(self, text: str) -> None:
        if text not in self._printed_texts:
            self.stdout.write(text)
        self._printed_texts.add(text)

    def _make_administrator(self) -> None:
        """Create the first superuser, unless there is one. A generated password is printed once."""
        email = os.environ.get("ADMIN_EMAIL", "")
        if User.objects.filter(is_superuser=True).exists():
            return
        if not email:
            self.stdout.write("No administrator yet. Create one with manage.py createsuperuser.")
            return
        try:
            check_address(email)
        except ValidationError as error:
            raise CommandError(f"ADMIN_EMAIL={email!r}: {error.message}") from None
        # Of the operator, or made here and told once.
        chosen_password = read_env_secret("ADMIN_PASSWORD")
        password = chosen_password or secrets.token_urlsafe(12)
        User.objects.create_superuser(email, password)
        if chosen_password:
            self.stdout.write(f"Administrator created: {email}.")
        else:
            self.stdout.write(f"Administrator created: {email}, password {password}")
