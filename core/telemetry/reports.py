"""Send logged errors to Sentry, without requests, people and variables."""

import logging

import sentry_sdk
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration

from core.versions import get_version


def start_error_reports(address: str) -> None:
    """Send uncaught exceptions and logged errors of this process to a Sentry address.

    Requests, queries and variables contain what people wrote, so none of them are sent.
    """
    sentry_sdk.init(
        address,
        # Not known yet while settings are read, when this is called.
        before_send=lambda event, hint: {**event, "release": get_version()},
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
