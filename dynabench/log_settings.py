"""Django's logging settings: one line per event, or one JSON object."""

import logging
from typing import Any


def build_log_settings(log_format: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING. With `json`, also starts to log Python's warnings."""
    loggers: dict[str, Any] = {
        # One line a request, at INFO, is noise; httpx says the same of each model call.
        "httpx": {"level": "WARNING"}
    }
    if log_format == "json":  # gunicorn's own lines of a worker
        loggers["gunicorn.error"] = {"handlers": [], "propagate": True}
        logging.captureWarnings(True)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": "core.telemetry.logs.JsonLines"},
        },
        "filters": {"one_line": {"()": "core.web.outages.OneLineFilter"}},
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": log_format,
                "filters": ["one_line"],
            }
        },
        "root": {"handlers": ["console"], "level": level},
        "loggers": loggers,
    }
