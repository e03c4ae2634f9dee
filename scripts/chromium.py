"""Where Chromium is on this machine, for tests, benches and the pictures of the documents."""

import os
import shutil

# The headless shell needs half of the processor time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
"""Its path; None where there is none."""
