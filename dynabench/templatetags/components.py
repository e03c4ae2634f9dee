"""Template tags for markup that many pages repeat. Longer markup is in templates/components/."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.forms import BaseForm
from django.template import Context
from django.template.defaultfilters import date
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.people import get_member_label
from core.text.money import format_money, format_smallest_units
from tasks.models import Task
from tasks.permissions import (
    Person,
    can_enter_judging,
    can_own,
    can_submit,
    can_write,
)

register = template.Library()
LINK_PERMISSIONS = {"write": can_write, "judge": can_enter_judging, "submit": can_submit}


@register.filter(name="price")
def format_price(amount: float | None, places: int | None = None) -> str:
    """Format an amount in whole units of the site's currency; a dash if it is None."""
    return "–" if amount is None else format_money(amount, places=places)


@register.filter(name="small_price")
def format_small_price(amount: float) -> str:
    """Format an amount in the smallest unit of the site's currency."""
    return format_smallest_units(amount)


@register.simple_tag(name="sign_in")
def get_sign_in_options() -> dict[str, str]:
    """Return the name of the organisation's sign-in provider, or "", and who may use passwords."""
    provider = ""
    if settings.OIDC_ISSUER:
        provider = settings.OIDC_NAME
    return {"provider": provider, "by_password": settings.PASSWORD_SIGN_IN}


@register.simple_block_tag(name="table")
def draw_table(content: str, label: str, look: str = "") -> SafeString:
    """Wrap a table so that only the table scrolls sideways on narrow screens.

    label: its accessible name. look: its CSS classes.
    """
    return render_to_string(
        "components/table.html", {"content": content, "label": label, "look": look}
    )


@register.simple_block_tag(takes_context=True, name="shield")
def hide_sensitive_text(context: Context, content: str, is_sensitive: bool, label: str = "") -> str:
    """Hide the text of a sensitive task until the reader opens it, or opens all such texts.

    Other texts are returned unchanged. label: the text of the element that opens it.
    """
    # Other texts stay as they are, without a box around them.
    if not is_sensitive:
        return content
    request = context.get("request")
    is_open = request is not None and request.GET.get("show") == "all"
    values = {"content": content, "label": label, "is_open": is_open}
    return render_to_string("components/shield.html", values)


@register.simple_block_tag(takes_context=True)
def announce(context: Context, content: str) -> str:
    """Announce to screen readers what htmx replaced, through the page's status line.

    Returns "" if a whole page is rendered, because screen readers read it from its beginning.
    """
    message = SafeString(content.strip())
    # A whole page is read from its beginning by screen readers.
    if not message or not context.get("is_part"):
        return ""
    return format_html('<span hx-swap-oob="innerHTML:#status">{}</span>', message)


@register.filter("stop")
def get_full_stop(text: str) -> str:
    """Return a full stop, or "" if the text ends with a punctuation mark."""
    if text.endswith((".", "!", "?", "…")):
        return ""
    return "."


@register.simple_block_tag(name="problem")
def draw_problem_box(content: str) -> SafeString:
    """Draw the box above a form that explains a refusal. The box gets the focus."""
    return render_to_string("components/problem.html", {"content": content})


@register.simple_tag(name="error_summary")
def draw_error_summary(form: BaseForm | None, labels: bool = True) -> str:
    """Return a list of the form's errors, each linked to its field; "" without errors.

    labels: whether each error begins with the field's label.
    """
    if not form or not form.errors:
        return ""
    error_count = sum(len(errors) for errors in form.errors.values())
    has_visible_field = any(field.errors for field in form.visible_fields())
    values = {"form": form, "labels": labels, "is_single": error_count == 1 and has_visible_field}
    return render_to_string("components/error_summary.html", values)


@register.simple_tag(name="error_word")
def get_title_prefix(*sources: Any) -> str:
    """Return "Error: " as a prefix for the page's title if a form or message has an error.

    Return "" otherwise.
    """
    for source in sources:
        errors = source
        if isinstance(source, BaseForm):
            errors = source.errors
        if errors:
            return gettext("Error:") + " "
    return ""


@register.simple_tag(takes_context=True, name="door")
def build_member_url(context: Context, name: str, *args: Any) -> str:
    """Return the URL of a page that needs an account.

    For visitors, it is the URL of the sign-up page, which then leads to that page.
    """
    url = reverse(name, args=args)
    if context["user"].is_authenticated:
        return url
    return reverse("account_signup", query={"next": url})


@register.simple_tag(takes_context=True, name="offers")
def can_offer_link(context: Context, task: Task, permission_name: str) -> bool:
    """Return whether to link to a page of the task because the person may use it.

    permission_name: a key of LINK_PERMISSIONS. In a public task, everybody without a known role
    gets the link, and the role is not looked up.
    """
    user: Person = context["user"]
    # On lists of many tasks a query for each would be too much; the page itself decides.
    if task.is_visible and user.pk not in task.roles:
        return True
    return LINK_PERMISSIONS[permission_name](user, task)


@register.simple_tag(takes_context=True, name="account")
def get_name_in_task(context: Context, user: User | None, default: str = "") -> str:
    """Return the name of an account that did something in the page's task.

    user: the account, loaded with its annotator. default: the text if there is no account. No
    query, because the reader's role is known.
    """
    if user is None and default:
        return default
    return get_member_label(user, is_owner=can_own(context["user"], context["task"]))


@register.filter("code_marked")
def mark_code(text: str) -> SafeString:
    """Return the text, escaped, with the parts between backticks marked as code.

    >>> mark_code("`<b>` & so")
    '<code>&lt;b&gt;</code> &amp; so'
    """
    return SafeString(re.sub("`([^`]+)`", r"<code>\1</code>", conditional_escape(text)))


@register.filter("submit_words")
def get_submit_label(task: Task) -> str:
    """Return the text of the button that leads to the submission page."""
    if task.config.training_rows:
        return gettext("Submit training data")
    return gettext("Submit a model")


@register.filter("task_class")
def get_task_class(task: Task) -> str:
    """Return the CSS class of a task's colour, one of six."""
    # By its id, so that a task keeps its colour.
    return f"task-{task.pk % 6 + 1}"


@register.simple_tag(name="posts")
def build_form_attributes(
    url: str, target: str, swap: str = "outerHTML", replace_url: str = ""
) -> SafeString:
    """Return the attributes of a form that htmx submits, one request at a time.

    The form also works without htmx. target: the selector of the element to replace. swap: how to
    replace it. replace_url: the URL to show afterwards, if another one.
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


@register.simple_tag(name="vote_dots")
def draw_vote_dots(given_count: int, open_count: int) -> SafeString:
    """Draw a dot for each required vote, filled if the vote was given.

    The text next to the dots says the same.
    """
    dots = "●" * given_count + "○" * open_count
    return format_html('<span class="dots" aria-hidden="true">{}</span>', dots)


@register.simple_tag(name="moment")
def draw_time(time: datetime, style: str = "j M Y, H:i") -> SafeString:
    """Return a time as HTML for people and programs.

    A time with hours is shown in UTC; site.js converts it to local time. style: a format of
    Django's `date` filter.
    """
    if "H" not in style:
        return format_html('<time datetime="{}">{}</time>', date(time, "c"), date(time, style))
    kind = "both"  # what site.js writes: date and time, or only the time
    if style.startswith("H"):
        kind = "time"
    values = date(time, "c"), kind, date(time, style)
    return format_html('<time datetime="{}" data-local="{}">{} UTC</time>', *values)


@register.simple_tag(name="tab")
def draw_tab(view: str, label: str, current_view: str, *args: Any) -> SafeString:
    """Draw a tab. current_view: the last part of the current page's view name."""
    is_here = view.rpartition(":")[2] == current_view
    current = ""
    if is_here:
        current = SafeString(' aria-current="page"')
    return format_html('<li><a href="{}"{}>{}</a></li>', reverse(view, args=args), current, label)


@register.simple_tag(name="nothing")
def draw_empty_state(title: str, words: str = "", url: str = "", action: str = "") -> SafeString:
    """Draw the text that says what will appear in an empty place, with a button to `url`, if given.

    title: the heading. words: the explanation. action: the button's text.
    """
    values = {"title": title, "words": words, "url": url, "action": action}
    return render_to_string("components/empty.html", values)
