"""Which e-mail addresses the site takes: those to which it can send a mail.

Django's own check takes invisible and unassigned characters, and names of hosts that no mail
reaches. A sender then fails, long after the form was fine.
"""

import unicodedata
from typing import Any

import idna
from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.deconstruct import deconstructible
from rest_framework import serializers

from core.text.names import UNFIT

LONGEST = 254
"""Letters of an address that mail carries (RFC 5321) and a column holds."""
HIDDEN = {*UNFIT, "Zs"}
"""Categories of characters that are not seen or not assigned, as U+202E, which turns text round."""


def is_address(text: str) -> bool:
    """Return whether mail can be sent to `text`."""
    try:
        check_address(text)
    except ValidationError:
        return False
    return True


@deconstructible
class AddressValidator(EmailValidator):
    """Django's validator, which also refuses undeliverable addresses."""

    def __call__(self, value: str | None) -> None:
        """Raise ValidationError unless the value is an address."""
        super().__call__(value)
        text = str(value)
        is_long = len(text) > LONGEST
        is_hidden = any(unicodedata.category(character) in HIDDEN for character in text)
        if is_long or is_hidden or not _is_host(text):
            raise ValidationError(self.message, code=self.code, params={"value": value})


def _is_host(address: str) -> bool:
    """Return whether a valid host name follows the @, in the form of mail (IDNA).

    An IP address in brackets is refused: few servers accept mail for one, and it would be a second
    spelling of the same address.
    """
    host = address.rpartition("@")[2]
    if host.startswith("["):
        return False
    try:
        # Mail would go to "strasse" for "straße", which is another's name by the rules of today.
        former = host.rstrip(".").encode("idna")
        return former.lower() == idna.encode(host.rstrip("."), uts46=True).lower()
    except UnicodeError:  # idna.IDNAError is one
        return False


check_address = AddressValidator()


class AddressField(forms.EmailField):
    """A form field for an address to which the site can send mail."""

    default_validators = [check_address]


class AddressInRequest(serializers.EmailField):
    """A serializer field for an address to which the site can send mail."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        other_validators = [
            validator for validator in self.validators if not isinstance(validator, EmailValidator)
        ]
        self.validators = [
            *other_validators,
            AddressValidator(message=self.error_messages["invalid"]),
        ]
