"""A template tag that connects allauth's passkey script to the site's forms."""

from django import template
from django.utils.html import json_script
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(name="passkey_script")
def build_passkey_script(form: str, **ids: str) -> SafeString:
    """Return a script element that tells allauth's script which elements a form has.

    form: the name of the script's function. ids: the elements' ids, by the names that the script
    uses.
    """
    data = json_script({"ids": ids})
    # The script starts what this attribute names. The data is escaped already.
    attribute = f'data-allauth-onload="allauth.webauthn.forms.{form}"'
    return SafeString(data.replace("<script ", f"<script {attribute} ", 1))
