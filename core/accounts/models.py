"""Models of people: users, annotators, tokens, counted people and the audit log."""

import secrets
import uuid
from datetime import timedelta
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models, transaction
from django.db.models.functions import Lower, Now
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

TOKEN_WARNING_TIME = timedelta(days=14)
PANEL_ADDRESS_ENDING = "@panel.invalid"
"""The ending of the made-up addresses that accounts of panel participants have."""


class UserManager(BaseUserManager["User"]):
    """A manager of users, who are identified by their email address."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Create a superuser whose address counts as confirmed, because operators create them."""
        user = self.create_user(email, password, is_superuser=True, **fields)
        confirm_address(user)
        return user


def confirm_address(user: "User") -> None:
    """Mark the account's address as confirmed without sending a mail."""
    address = {"user": user, "email": user.email.lower()}
    EmailAddress.objects.update_or_create(**address, defaults={"verified": True, "primary": True})


class User(AbstractUser):
    """A person with an account, identified by an email address instead of a user name."""

    username = None  # type: ignore[assignment]
    is_staff = None  # type: ignore[assignment]  # the admin asks for roles
    email = models.EmailField("e-mail address", unique=True)
    language = models.CharField(
        max_length=10, blank=True, default="", db_default="", editable=False,
        help_text="Of the mails to the person; empty: the site's.",
    )  # fmt: skip

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []

    objects = UserManager()  # type: ignore[assignment,misc]

    class Meta:
        # `unique` alone would let Ada@ and ada@ be two accounts of one mailbox.
        constraints = [models.UniqueConstraint(Lower("email"), name="user_one_email")]

    @property
    def is_panel_participant(self) -> bool:
        """Return whether the person joined a study from a panel, without an account of their own.

        They gave no address and no password, so they can open only the tasks of their studies.
        """
        return self.email.endswith(PANEL_ADDRESS_ENDING)

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Return whether the user has one of Django's permissions.

        Active superusers have all of them, other people none.
        """
        return self.is_active and self.is_superuser

    def has_module_perms(self, app_label: str) -> bool:
        return self.has_perm(app_label)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the user. A new password, set by any code, revokes the API tokens.

        `_password` is Django's own attribute, set until a new password is stored.
        """
        if self.pk is None or self._password is None:  # type: ignore[attr-defined]
            return super().save(*args, **kwargs)
        with transaction.atomic():
            super().save(*args, **kwargs)
            ApiToken.objects.filter(user=self).delete()


def new_pseudonym() -> str:
    """Return a random public name such as w-7f3k2m.

    A rare duplicate violates the unique constraint.
    """
    # Without 0, 1, i, l and o, which are taken for each other.
    alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
    return "w-" + "".join(secrets.choice(alphabet) for _ in range(6))


class Annotator(models.Model):
    """The pseudonymous contributor to whom examples and validations belong.

    Deleting the user keeps the annotator, so released rows have an author but no name.
    """

    class Source(models.TextChoices):
        SITE = "site"
        PROLIFIC = "prolific"
        MTURK = "mturk"
        PANEL = "panel"
        IMPORT = "import"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    pseudonym = models.CharField(max_length=40, unique=True, default=new_pseudonym)
    source = models.CharField(max_length=10, choices=Source, default=Source.SITE)
    keyboard_mode = models.BooleanField(default=False)
    in_ranking = models.BooleanField(
        default=False, help_text="The person chose to appear, by pseudonym, in people rankings."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "person"
        verbose_name_plural = "people"

    def __str__(self) -> str:
        """Return the name that owners see: the pseudonym.

        For imported annotators, it is a hash of the pseudonym, because that contains an id of the
        source.
        """
        if self.source != self.Source.IMPORT:
            return self.pseudonym
        return f"import-{salted_hmac('shown name', self.pseudonym).hexdigest()[:8]}"


class LogEntry(models.Model):
    """An entry of the audit log. `action` is a dotted word: round.closed, target.registered."""

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    # Indexed for the history of a configuration or a policy, and for tidying by kind.
    action = models.CharField(max_length=60, db_index=True)
    target = models.CharField(max_length=200)
    # Indexed for the log that members of a task read.
    task = models.CharField(max_length=40, blank=True, default="", db_index=True)  # its code
    data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "log"

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class ApiToken(models.Model):
    """A token with which a program acts for a person.

    The key is shown once; only its SHA-256 digest is stored. No salt is needed, because the key is
    256 random bits, unlike a password.
    """

    class Scope(models.TextChoices):
        READ = "read", _("Read everything you can see")
        ANNOTATE = "annotate", _("Write and judge examples")
        SUBMIT = "submit", _("Submit models and edit yours")
        OWN = "own", _("Manage the tasks you own or edit")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)  # the beginning of the key, to tell tokens apart
    # Each request with a token looks it up by this.
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True, editable=False)  # mailed that it ends

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_expired(self) -> bool:
        """Return whether the token has expired."""
        return self.expires_at <= timezone.now()

    @property
    def is_expiring_soon(self) -> bool:
        """Return whether the token expires soon, so that its owner should be warned."""
        return not self.is_expired and self.expires_at <= timezone.now() + TOKEN_WARNING_TIME


class Undo(models.Model):
    """A link that undoes a change to how a person signs in. Only its digest is stored.

    It was mailed to an address that the account had before the change. See
    `core.accounts.undo_services`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    address = models.EmailField()
    # Indexed for the sweep of links that are over.
    made_at = models.DateTimeField(db_default=Now(), db_index=True)

    def __str__(self) -> str:
        return f"{self.digest[:8]} of {self.user}"


class IdempotentAnswer(models.Model):
    """The stored response to a request with an Idempotency-Key; `status` is null while it runs."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)  # of method, path and body
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(null=True)  # JSON; jsonb would turn its keys around
    begun_at = models.DateTimeField()

    class Meta:
        # Of requests with one key that come at once, one is carried out.
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]
        # For `purge_idempotent_answers`, which deletes by age.
        indexes = [models.Index(fields=["begun_at"])]

    def __str__(self) -> str:
        return self.key


class Erasure(models.Model):
    """A record of an erased object, kept until the erasure log contains it.

    With it, a restored backup cannot bring the object back. See `core.accounts.erasure_log`.
    """

    class Kind(models.TextChoices):
        PERSON = "person"
        EXAMPLE = "example"
        SUBMISSION = "submission"
        TOKEN = "token"  # noqa: S105

    kind = models.CharField(max_length=10, choices=Kind)
    digest = models.CharField(max_length=64)  # keyed: it tells nothing without the site's key
    erased_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.kind} {self.digest[:8]}"


class CountedPerson(models.Model):
    """A person whose quotas and seen scores are counted across all accounts, deleted ones too.

    See `core.accounts.counting`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"person {self.pk}"


class PersonAccount(models.Model):
    """The link between an account and its counted person.

    It has a table of its own, so that `User` needs no index.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    person = models.ForeignKey(CountedPerson, on_delete=models.CASCADE, related_name="accounts")

    def __str__(self) -> str:
        return f"{self.user} of {self.person}"


class AddressMark(models.Model):
    """A keyed hash of an address that a counted person has confirmed."""

    # Two accounts that confirm one address at once leave one mark, and so one person.
    digest = models.CharField(max_length=64, unique=True)
    person = models.ForeignKey(CountedPerson, on_delete=models.CASCADE, related_name="marks")
    marked_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.digest[:8]} of {self.person}"


class SpentQuota(models.Model):
    """The part of a day's quota that a person used with an account deleted on that day."""

    person = models.ForeignKey(CountedPerson, on_delete=models.CASCADE, related_name="spent")
    quota = models.CharField(max_length=60)  # of `counting.build_quota_name`
    number = models.PositiveIntegerField()
    day = models.DateField()

    def __str__(self) -> str:
        return f"{self.number} {self.quota} of {self.person}"


class SiteKey(models.Model):
    """A random key of the site, stored encrypted. Unlike SECRET_KEY it never changes."""

    # Two processes that need a key for the first time make one.
    name = models.CharField(max_length=40, unique=True)
    sealed = models.TextField()

    def __str__(self) -> str:
        return self.name
