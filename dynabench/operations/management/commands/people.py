"""Manage accounts, roles and tokens from the command line, with the services of the pages."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from core.accounts.access_services import change_suspension, end_access
from core.accounts.models import ApiToken, User
from core.accounts.tokens import MAX_TOKEN_DAYS, create_token
from core.env import ROLES
from core.errors import Refused
from core.mail.addresses import check_address
from tasks.models import Task
from tasks.services import set_role


class Command(BaseCommand):
    help = "Manage accounts: list, add, suspend, and set roles and tokens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="do", required=True)
        actions.add_parser("list", help="list all accounts")
        add = actions.add_parser("add", help="add an account; prints its password once")
        add.add_argument("email")
        add.add_argument("--administrator", action="store_true")
        for name, help_text in (
            ("suspend", "suspend an account and end its sessions and tokens"),
            ("admit", "reactivate a suspended account"),
            ("revoke", "end an account's sessions and tokens; the person can sign in again"),
        ):
            actions.add_parser(name, help=help_text).add_argument("email")
        role = actions.add_parser("role", help="set a person's role in a task")
        role.add_argument("email")
        role.add_argument("task", help="the task's code")
        role.add_argument("role", choices=[*ROLES, "none"])
        token = actions.add_parser("token", help="create an API token; prints its key once")
        token.add_argument("email")
        token.add_argument("name")
        token.add_argument("--scopes", nargs="+", choices=ApiToken.Scope.values, default=["read"])
        token.add_argument("--days", type=int, default=90, choices=range(1, MAX_TOKEN_DAYS + 1),
                           metavar="DAYS")  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {
            "list": self._list, "add": self._add, "suspend": self._suspend, "admit": self._admit,
            "revoke": self._revoke, "role": self._set_role, "token": self._make_token,
        }  # fmt: skip
        try:
            actions[options["do"]](options)
        except Refused as error:
            raise CommandError(str(error)) from None

    def _list(self, options: dict[str, Any]) -> None:
        for user in User.objects.order_by("email"):
            kind, state, last_login = "person", "suspended", "never"
            if user.is_superuser:
                kind = "administrator"
            if user.is_active:
                state = "active"
            if user.last_login:
                last_login = f"{user.last_login:%Y-%m-%d}"
            self.stdout.write(f"{user.email}\t{kind}\t{state}\tlast sign-in: {last_login}")

    def _add(self, options: dict[str, Any]) -> None:
        email, password = options["email"], secrets.token_urlsafe(12)
        try:
            # As the sign-up page does.
            check_address(email)
        except ValidationError as error:
            raise CommandError(f"{email}: {error.message}") from None
        if User.objects.filter(email__iexact=email).exists():
            raise CommandError(f"{email} already has an account.")
        create_user = User.objects.create_user
        if options["administrator"]:
            create_user = User.objects.create_superuser
        create_user(email, password)
        self.stdout.write(f"{email} can sign in with this password: {password}")

    def _suspend(self, options: dict[str, Any]) -> None:
        change_suspension(user=_find_user(options), is_suspended=True, actor=None)

    def _admit(self, options: dict[str, Any]) -> None:
        change_suspension(user=_find_user(options), is_suspended=False, actor=None)

    def _revoke(self, options: dict[str, Any]) -> None:
        self.stdout.write(f"Tokens revoked: {end_access(user=_find_user(options), actor=None)}.")

    def _set_role(self, options: dict[str, Any]) -> None:
        task = Task.objects.filter(code=options["task"]).first()
        if task is None:
            raise CommandError(f"Unknown task {options['task']!r}.")
        role = options["role"]
        if role == "none":  # takes the person out of the task
            role = None
        set_role(task=task, user=_find_user(options), role=role)

    def _make_token(self, options: dict[str, Any]) -> None:
        values = {name: options[name] for name in ("name", "scopes", "days")}
        # Only the key, so that a script can read it.
        self.stdout.write(create_token(user=_find_user(options), **values)[1])


def _find_user(options: dict[str, Any]) -> User:
    user = User.objects.filter(email__iexact=options["email"]).first()
    if user is None:
        raise CommandError(f"No account has the email address {options['email']}.")
    return user
