"""Messages for failed attempts, by their `failure` code."""

from django.utils.translation import gettext_noop

from tasks.targets.endpoints.base import UNANSWERED_REASONS

# Marked for translation only: pages translate them for each reader.
FAILURE_MESSAGES = {
    "busy": gettext_noop("Many people are using the model right now."),
    "slow": gettext_noop("The model took too long to answer."),
    "closed": gettext_noop("The round closed before the model answered."),
    "duplicate": gettext_noop("You sent the same text from another window."),
    "changed": gettext_noop("The conversation continued in another window."),
    "lost": gettext_noop("The connection to the model was lost."),
    "replaced": gettext_noop("The model was replaced before it answered."),
    "loading": gettext_noop("The model is busy or still loading."),
    "spent": gettext_noop("The model's budget is used up for now."),
    "refused": gettext_noop(
        "The model's server rejected this text. Try another text. We've told the task's owners."
    ),
    "too_long": gettext_noop("The text is too long for this model. Shorten it."),
    "filtered": gettext_noop(
        "A content filter blocked the model's answer to this text. Try another text."
    ),
    "declined": gettext_noop("The model declined to answer this text. Try another text."),
    "empty": gettext_noop("The model gave an empty answer. We've told the task's owners."),
    "unmatched": gettext_noop(
        "The model's answer isn't one of the allowed answers. We've told the task's owners."
    ),
    "unfinished": gettext_noop("The model didn't finish its answer. We've told the task's owners."),
    "rubbish": gettext_noop(
        "The model is broken: it gave no valid answer. We've told the task's owners."
    ),
    "misconfigured": gettext_noop(
        "The model is broken: its settings don't fit this task. We've told the task's owners."
    ),
}
NO_ANSWER_MESSAGE = gettext_noop("The model didn't answer.")
BROKEN_REASONS = ("rubbish", "misconfigured", *UNANSWERED_REASONS)
"""Failures after which the same text would fail again."""
STATUS_BY_FAILURE = {"closed": 410, "duplicate": 422}
"""The HTTP status of the response, by failure code; 503 for all other codes."""
