"""The reasons why attempts fail, in words, by the code in `failure`."""

from django.utils.translation import gettext_noop

from tasks.targets.endpoints.base import UNANSWERED_REASONS

FAILURES = {
    "busy": gettext_noop("Many people are asking the model right now."),
    "slow": gettext_noop("The model took too long to answer."),
    "closed": gettext_noop("The round closed while the model was asked."),
    "duplicate": gettext_noop("You sent this very text from another window."),
    "changed": gettext_noop("The conversation went on in another window."),
    "lost": gettext_noop("The connection to the model was lost."),
    "replaced": gettext_noop("The model was replaced while it was asked."),
    "loading": gettext_noop("The model is busy, or is just being loaded."),
    "spent": gettext_noop("The model may not be asked more often for now: its budget is used up."),
    "refused": gettext_noop(
        "The model's server does not accept this text. If it refuses other texts too, it is "
        "broken. We have notified its owners."
    ),
    "too_long": gettext_noop("The text is too long for this model. Shorten it."),
    "filtered": gettext_noop(
        "A content filter stopped the model's answer to this text. Try another text."
    ),
    "declined": gettext_noop("The model declined to answer this text. Try another text."),
    "empty": gettext_noop("The model gave an empty answer. We have notified its owners."),
    "unmatched": gettext_noop(
        "The model's answer is none of the possible answers. We have notified its owners."
    ),
    "unfinished": gettext_noop("The model did not finish its answer. We have notified its owners."),
    "rubbish": gettext_noop(
        "The model is broken: it gave no valid answer. We have notified its owners."
    ),
    "misconfigured": gettext_noop(
        "The model is broken: its settings do not fit this task. We have notified its owners."
    ),
}
NO_ANSWER = gettext_noop("The model did not answer.")
BROKEN = ("rubbish", "misconfigured", *UNANSWERED_REASONS)
"""Failures after which the same text would fail again."""
FAILED_STATUS = {"closed": 410, "duplicate": 422}
"""Of the HTTP response; 503 for all others."""
