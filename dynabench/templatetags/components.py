"""Markup that many pages repeat; what is longer than a line lies in templates/components/."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.db.models import Model
from django.forms import BaseForm
from django.template import Context
from django.template.defaultfilters import date
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.people import account_name
from tasks.models import Task
from tasks.permissions import (
    Person,
    can_enter_judging,
    can_oversee,
    can_own,
    can_read,
    can_submit,
    can_write,
)

register = template.Library()
DOORS = {"write": can_write, "judge": can_enter_judging, "submit": can_submit}


@register.simple_tag
def sign_in() -> dict[str, str]:
    """Return the name of the organisation's provider, if there is one, and who has passwords."""
    provider = ""
    if settings.OIDC_ISSUER:
        provider = settings.OIDC_NAME
    return {"provider": provider, "by_password": settings.PASSWORD_SIGN_IN}


@register.simple_block_tag(name="table")
def scrolling_table(content: str, label: str, look: str = "") -> SafeString:
    """Wrap a table so that it scrolls by itself on narrow screens.

    `label` is its name, `look` its classes.
    """
    return render_to_string(
        "components/table.html", {"content": content, "label": label, "look": look}
    )


@register.simple_block_tag(takes_context=True)
def shield(context: Context, content: str, is_sensitive: bool, label: str = "") -> str:
    """Hide text of a sensitive task until the reader opens it, or asks for all of the page."""
    # Other texts stay as they are, without a box around them.
    if not is_sensitive:
        return content
    request = context.get("request")
    is_open = request is not None and request.GET.get("show") == "all"
    values = {"content": content, "label": label, "is_open": is_open}
    return render_to_string("components/shield.html", values)


@register.simple_block_tag(takes_context=True)
def announce(context: Context, content: str) -> str:
    """Say in the page's status line what htmx swapped."""
    message = SafeString(content.strip())
    # A whole page is read from its beginning by screen readers.
    if not message or not context.get("is_part"):
        return ""
    return format_html('<span hx-swap-oob="innerHTML:#status">{}</span>', message)


@register.filter("stop")
def full_stop(text: str) -> str:
    """Return the full stop of a sentence that this text ends; empty where it ends one itself."""
    if text.endswith((".", "!", "?", "…")):
        return ""
    return "."


@register.simple_block_tag
def problem(content: str) -> SafeString:
    """Draw the box above a form that says why it was refused. It takes the focus."""
    return render_to_string("components/problem.html", {"content": content})


@register.simple_tag
def error_summary(form: BaseForm | None, labels: bool = True) -> str:
    """List the errors of `form`, each a link to its field, after the field's label if `labels`."""
    if not form or not form.errors:
        return ""
    return render_to_string("components/error_summary.html", {"form": form, "labels": labels})


@register.simple_tag
def error_word(*sources: Any) -> str:
    """Return what a title begins with if one of the forms or messages is about an error."""
    for source in sources:
        errors = source
        if isinstance(source, BaseForm):
            errors = source.errors
        if errors:
            return gettext("Error:") + " "
    return ""


@register.simple_tag(takes_context=True)
def door(context: Context, name: str, *args: Any) -> str:
    """Return the address of a page that needs an account; strangers make one on the way."""
    url = reverse(name, args=args)
    if context["user"].is_authenticated:
        return url
    return reverse("account_signup", query={"next": url})


@register.simple_tag(takes_context=True)
def offers(context: Context, task: Task, what: str) -> bool:
    """Return whether to lead the person to one of DOORS; strangers sign up on the way.

    In a task that everybody sees no role is looked up for it.
    """
    user: Person = context["user"]
    # On lists of many tasks a query for each would be too much; the page itself decides.
    if task.is_visible and user.pk not in task.roles:
        return True
    return DOORS[what](user, task)


@register.simple_tag(takes_context=True)
def has_owner_pages(context: Context, task: Task) -> bool:
    """Return whether the owners' pages open for the person, blind owners among them.

    No query: on pages that have not looked up the person's role they are not offered.
    """
    user: Person = context["user"]
    # Superusers have no rows of roles.
    is_known = user.is_superuser or user.pk in task.roles
    return is_known and can_oversee(user, task)


@register.simple_tag(takes_context=True)
def account(context: Context, who: User | None, otherwise: str = "") -> str:
    """Name an account that did something in the task of the page. No query, its role is known.

    otherwise: what to say where there is none. `who` comes with its annotator.
    """
    if who is None and otherwise:
        return otherwise
    return account_name(who, owns=can_own(context["user"], context["task"]))


@register.filter
def code_marked(text: str) -> SafeString:
    """Mark what is between backticks as code, and escape all of the text.

    >>> code_marked("`<b>` & so")
    '<code>&lt;b&gt;</code> &amp; so'
    """
    return SafeString(re.sub("`([^`]+)`", r"<code>\1</code>", conditional_escape(text)))


@register.filter
def submit_words(task: Task) -> str:
    """Return the text of the button that leads to submitting."""
    if task.config.training_rows:
        return gettext("Submit training data")
    return gettext("Submit a model")


@register.filter
def task_class(task: Task) -> str:
    """Return the class that gives a task its colour, one of six."""
    # By its id, so that a task keeps its colour.
    return f"task-{task.pk % 6 + 1}"


@register.simple_tag
def posts(url: str, target: str, swap: str = "outerHTML", replace_url: str = "") -> SafeString:
    """Return the attributes of a form that htmx sends, one request at a time.

    The form works without htmx too.
    """
    # Two clicks in a row send one request.
    sent = format_html('method="post" action="{0}" hx-post="{0}" hx-sync="this:drop"', url)
    swapped = format_html('hx-target="{}" hx-swap="{}"', target, swap)
    replaced = ""
    if replace_url:
        replaced = format_html('hx-replace-url="{}"', replace_url)
    return format_html("{} {} {}", sent, swapped, replaced)


@register.simple_tag
def vote_dots(given: int, wanted: int) -> SafeString:
    """Draw a dot for each vote, full or still wanted; the words next to it say the same."""
    dots = "●" * given + "○" * wanted
    return format_html('<span class="dots" aria-hidden="true">{}</span>', dots)


@register.simple_tag
def moment(when: datetime, style: str = "j M Y, H:i") -> SafeString:
    """Show a time for people and programs.

    A style with hours ends in UTC; site.js makes it local.
    """
    if "H" not in style:
        return format_html('<time datetime="{}">{}</time>', date(when, "c"), date(when, style))
    kind = "both"  # what site.js writes: date and time, or only the time
    if style.startswith("H"):
        kind = "time"
    values = date(when, "c"), kind, date(when, style)
    return format_html('<time datetime="{}" data-local="{}">{} UTC</time>', *values)


@register.simple_tag
def tab(view: str, label: str, here: str, *args: Any) -> SafeString:
    """Draw a tab; `here` is the last part of the name of the page's own view."""
    is_here = view.rpartition(":")[2] == here
    current = ""
    if is_here:
        current = SafeString(' aria-current="page"')
    return format_html('<li><a href="{}"{}>{}</a></li>', reverse(view, args=args), current, label)


@register.simple_tag(takes_context=True)
def admin_row(context: Context, row: Model) -> SafeString:
    """Link a row in the admin; empty for those who do not read labels, who may not enter it."""
    if not can_read(context["user"], context["task"]):
        return SafeString("")
    about = row._meta
    url = reverse(f"admin:{about.app_label}_{about.model_name}_change", args=[row.pk])
    words = format_html('<span class="visually-hidden"> {}</span>', row)
    return format_html('<a href="{}">{}{}</a>', url, gettext("Admin"), words)


@register.simple_tag(name="nothing")
def empty_place(title: str, words: str = "", url: str = "", action: str = "") -> SafeString:
    """Show what will be in an empty place, and a button to `url`, if any."""
    values = {"title": title, "words": words, "url": url, "action": action}
    return render_to_string("components/empty.html", values)
