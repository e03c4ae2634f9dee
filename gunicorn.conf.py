"""What `gunicorn dynabench.wsgi` runs with wherever it starts; options of the command line win."""

import os
import sys

from dynabench.lib.web_server.worker import Worker

worker_class = Worker
threads = 2 * int(os.environ.get("LIVE_CALLS") or 8)
control_socket_disable = True

# The main process outlives releases: it keeps none of our modules, so that a reload (HUP) gives
# the new release to its workers, and this worker of the new release.
for name in [*sys.modules]:
    if name == "dynabench" or name.startswith("dynabench."):
        del sys.modules[name]
