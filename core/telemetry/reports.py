"""Errors that the log tells, sent to Sentry as well: without requests, people and variables."""

import logging

import sentry_sdk
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration

from core.versions import version


def report_to(address: str) -> None:
    """Send errors that this process logs, and uncaught exceptions, to a Sentry address.

    Requests, queries and variables contain what people wrote, so none of them is sent.
    """
    sentry_sdk.init(
        address,
        # Not known yet while settings are read, when this is called.
        before_send=lambda event, hint: {**event, "release": version()},
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            LoggingIntegration(level=None, event_level=logging.ERROR),
            ExcepthookIntegration(),
        ],
        include_local_variables=False,
        include_source_context=False,
        send_default_pii=False,
        max_breadcrumbs=0,
    )
