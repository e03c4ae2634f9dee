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
    """Return the name of the organization's sign-in provider, if any, and who has passwords."""
    provider = ""
    if settings.OIDC_ISSUER:
        provider = settings.OIDC_NAME
    return {"provider": provider, "by_password": settings.PASSWORD_SIGN_IN}


@register.simple_block_tag(name="table")
def scrolling_table(content: str, label: str, look: str = "") -> SafeString:
    """Wrap a table so that it scrolls sideways by itself on narrow screens.

    label: its accessible name. look: its CSS classes.
    """
    return render_to_string(
        "components/table.html", {"content": content, "label": label, "look": look}
    )


@register.simple_block_tag(takes_context=True)
def shield(context: Context, content: str, is_sensitive: bool, label: str = "") -> str:
    """Hide text of a sensitive task until the reader opens it, or opens all on the page."""
    # Other texts stay as they are, without a box around them.
    if not is_sensitive:
        return content
    request = context.get("request")
    is_open = request is not None and request.GET.get("show") == "all"
    values = {"content": content, "label": label, "is_open": is_open}
    return render_to_string("components/shield.html", values)


@register.simple_block_tag(takes_context=True)
def announce(context: Context, content: str) -> str:
    """Announce to screen readers what htmx swapped in, through the page's status line."""
    message = SafeString(content.strip())
    # A whole page is read from its beginning by screen readers.
    if not message or not context.get("is_part"):
        return ""
    return format_html('<span hx-swap-oob="innerHTML:#status">{}</span>', message)


@register.filter("stop")
def full_stop(text: str) -> str:
    """Return a full stop, or an empty string if the text ends with a punctuation mark."""
    if text.endswith((".", "!", "?", "…")):
        return ""
    return "."


@register.simple_block_tag
def problem(content: str) -> SafeString:
    """Draw the box above a form that explains a refusal. The box takes the focus."""
    return render_to_string("components/problem.html", {"content": content})


@register.simple_tag
def error_summary(form: BaseForm | None, labels: bool = True) -> str:
    """List the errors of the form, each linked to its field.

    labels: whether each error begins with the field's label.
    """
    if not form or not form.errors:
        return ""
    return render_to_string("components/error_summary.html", {"form": form, "labels": labels})


@register.simple_tag
def error_word(*sources: Any) -> str:
    """Return the prefix of a page title if any of the forms or messages has an error."""
    for source in sources:
        errors = source
        if isinstance(source, BaseForm):
            errors = source.errors
        if errors:
            return gettext("Error:") + " "
    return ""


@register.simple_tag(takes_context=True)
def door(context: Context, name: str, *args: Any) -> str:
    """Return the URL of a page that needs an account. Visitors without one sign up on the way."""
    url = reverse(name, args=args)
    if context["user"].is_authenticated:
        return url
    return reverse("account_signup", query={"next": url})


@register.simple_tag(takes_context=True)
def offers(context: Context, task: Task, what: str) -> bool:
    """Return whether to link to a page that the person may use. Visitors sign up on the way.

    what: a key of DOORS. In a public task, does not look up the person's role.
    """
    user: Person = context["user"]
    # On lists of many tasks a query for each would be too much; the page itself decides.
    if task.is_visible and user.pk not in task.roles:
        return True
    return DOORS[what](user, task)


@register.simple_tag(takes_context=True)
def has_owner_pages(context: Context, task: Task) -> bool:
    """Return whether the person may open the owners' pages, as blind owners also may.

    No query. False on pages that have not looked up the person's role.
    """
    user: Person = context["user"]
    # Superusers have no rows of roles.
    is_known = user.is_superuser or user.pk in task.roles
    return is_known and can_oversee(user, task)


@register.simple_tag(takes_context=True)
def account(context: Context, who: User | None, otherwise: str = "") -> str:
    """Return the name of an account that did something in the page's task.

    otherwise: the text without an account. who: selected with its annotator. No query, because the
    reader's role is known.
    """
    if who is None and otherwise:
        return otherwise
    return account_name(who, owns=can_own(context["user"], context["task"]))


@register.filter
def code_marked(text: str) -> SafeString:
    """Mark text between backticks as code, and escape the whole text.

    >>> code_marked("`<b>` & so")
    '<code>&lt;b&gt;</code> &amp; so'
    """
    return SafeString(re.sub("`([^`]+)`", r"<code>\1</code>", conditional_escape(text)))


@register.filter
def submit_words(task: Task) -> str:
    """Return the text of the button to the submission page."""
    if task.config.training_rows:
        return gettext("Submit training data")
    return gettext("Submit a model")


@register.filter
def task_class(task: Task) -> str:
    """Return the CSS class of a task's colour, one of six."""
    # By its id, so that a task keeps its colour.
    return f"task-{task.pk % 6 + 1}"


@register.simple_tag
def posts(url: str, target: str, swap: str = "outerHTML", replace_url: str = "") -> SafeString:
    """Return the attributes of a form that htmx submits, one request at a time.

    The form also works without htmx.
    """
    # Two clicks in a row send one request.
    post_attributes = format_html(
        'method="post" action="{0}" hx-post="{0}" hx-sync="this:drop"', url
    )
    swap_attributes = format_html('hx-target="{}" hx-swap="{}"', target, swap)
    replace_attribute = ""
    if replace_url:
        replace_attribute = format_html('hx-replace-url="{}"', replace_url)
    return format_html("{} {} {}", post_attributes, swap_attributes, replace_attribute)


@register.simple_tag
def vote_dots(given_count: int, open_count: int) -> SafeString:
    """Draw a dot for each required vote, filled for those given.

    The text next to the dots says the same.
    """
    dots = "●" * given_count + "○" * open_count
    return format_html('<span class="dots" aria-hidden="true">{}</span>', dots)


@register.simple_tag
def moment(at: datetime, style: str = "j M Y, H:i") -> SafeString:
    """Return a time as HTML for people and programs.

    A style with hours ends in UTC; site.js converts it to local time.
    """
    if "H" not in style:
        return format_html('<time datetime="{}">{}</time>', date(at, "c"), date(at, style))
    kind = "both"  # what site.js writes: date and time, or only the time
    if style.startswith("H"):
        kind = "time"
    values = date(at, "c"), kind, date(at, style)
    return format_html('<time datetime="{}" data-local="{}">{} UTC</time>', *values)


@register.simple_tag
def tab(view: str, label: str, current_view: str, *args: Any) -> SafeString:
    """Draw a tab. current_view: the last part of the name of the current page's view."""
    is_here = view.rpartition(":")[2] == current_view
    current = ""
    if is_here:
        current = SafeString(' aria-current="page"')
    return format_html('<li><a href="{}"{}>{}</a></li>', reverse(view, args=args), current, label)


@register.simple_tag(takes_context=True)
def admin_row(context: Context, row: Model) -> SafeString:
    """Link to a row in the admin; empty for people who may not read labels."""
    if not can_read(context["user"], context["task"]):
        return SafeString("")
    about = row._meta
    url = reverse(f"admin:{about.app_label}_{about.model_name}_change", args=[row.pk])
    words = format_html('<span class="visually-hidden"> {}</span>', row)
    return format_html('<a href="{}">{}{}</a>', url, gettext("Admin"), words)


@register.simple_tag(name="nothing")
def empty_place(title: str, words: str = "", url: str = "", action: str = "") -> SafeString:
    """Show what will appear in an empty place, with a button to `url`, if any."""
    values = {"title": title, "words": words, "url": url, "action": action}
    return render_to_string("components/empty.html", values)
