"""Accept only email addresses to which the site can send mail.

Django's own check accepts invisible and unassigned characters, and host names that no mail reaches.
Sending would then fail, long after the form was accepted.
"""

import unicodedata
from typing import Any

import idna
from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.deconstruct import deconstructible
from rest_framework import serializers

from core.text.names import UNFIT_CATEGORIES

MAX_ADDRESS_CHARS = 254
"""The maximum length of an address for mail (RFC 5321) and for the column, in characters."""
HIDDEN_CATEGORIES = {*UNFIT_CATEGORIES, "Zs"}
"""Unicode categories of invisible or unassigned characters, such as U+202E, which reverses text."""


def is_mail_address(text: str) -> bool:
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
        """Raise ValidationError unless the value is a deliverable address."""
        super().__call__(value)
        text = str(value)
        is_too_long = len(text) > MAX_ADDRESS_CHARS
        has_hidden_character = any(
            unicodedata.category(character) in HIDDEN_CATEGORIES for character in text
        )
        if is_too_long or has_hidden_character or not _has_valid_host(text):
            raise ValidationError(self.message, code=self.code, params={"value": value})


def _has_valid_host(address: str) -> bool:
    """Return whether a valid host name follows the @, in the form that mail uses (IDNA).

    An IP address in brackets is refused: few servers accept mail for one, and it would be a second
    spelling of the same address.
    """
    host = address.rpartition("@")[2]
    # Brackets hold an IP address in place of a name.
    if host.startswith("["):
        return False
    try:
        # Mail would go to "strasse" for "straße", which is another's name by the rules of today.
        encoded_host = host.rstrip(".").encode("idna")
        return encoded_host.lower() == idna.encode(host.rstrip("."), uts46=True).lower()
    except UnicodeError:  # idna.IDNAError is one
        return False


check_address = AddressValidator()


class AddressField(forms.EmailField):
    """A form field for an address to which the site can send mail."""

    default_validators = [check_address]


class AddressSerializerField(serializers.EmailField):
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
