"""Simulations take minutes and change only with a formula: `SIMULATE=1 ./test simulations`."""

import os

collect_ignore_glob = [] if os.environ.get("SIMULATE") == "1" else ["test_*.py"]
