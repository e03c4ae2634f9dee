"""What `gunicorn dynabench.wsgi` runs with wherever it starts; options of the command line win."""

import json
import logging
import sys
from datetime import UTC, datetime

from gunicorn.glogging import Logger

from core.env import EnvError, read_env_choice, read_env_int
from core.web.web_server.worker import Worker

worker_class = Worker
try:
    threads = 2 * read_env_int("LIVE_CALLS", 8, minimum=1, maximum=1000)  # as in settings.py
    is_json = read_env_choice("LOG_FORMAT", "line", "json") == "json"
except EnvError as error:
    sys.exit(str(error))
control_socket_disable = True


class JsonLines(logging.Formatter):
    """As those of the site, which the main process does not import: it outlives releases."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class JsonLogger(Logger):
    """gunicorn's, with lines of JSON."""

    def setup(self, cfg: object) -> None:
        """Make the handlers as gunicorn does."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonLines())


if is_json:
    logger_class = JsonLogger

# The main process outlives releases: it keeps none of our modules, so that a reload (HUP) gives
# the new release to its workers, and this worker of the new release.
for name in [*sys.modules]:
    if name.split(".")[0] in ("core", "dynabench"):
        del sys.modules[name]
