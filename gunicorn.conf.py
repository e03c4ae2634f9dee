"""What `gunicorn dynabench.wsgi` runs with wherever it starts; options of the command line win."""

import sys

from dynabench.env import EnvError, env_int
from dynabench.lib.web_server.worker import Worker

worker_class = Worker
try:
    threads = 2 * env_int("LIVE_CALLS", 8, least=1, most=1000)  # as in settings.py
except EnvError as error:
    sys.exit(str(error))
control_socket_disable = True

# The main process outlives releases: it keeps none of our modules, so that a reload (HUP) gives
# the new release to its workers, and this worker of the new release.
for name in [*sys.modules]:
    if name == "dynabench" or name.startswith("dynabench."):
        del sys.modules[name]
