"""The site's own settings, with one more page: the least that a signed-in POST can do."""

import os

from dynabench.settings import *  # noqa: F403
from dynabench.settings import STORAGES
from validation.consensus import reading

ROOT_URLCONF = "bench.site_urls"
reading.MIN_READING_SECONDS = 0  # the site is measured, not how long people look
# Hashed names as in production, without compressing the files again in each run. A site in the
# measuring process (`bench/prepared.py`) collects no files.
IS_PLAIN = os.environ.get("BENCH_STATIC") == "plain"
STORAGES["staticfiles"] = {
    "BACKEND": "django.contrib.staticfiles.storage."
    + ("StaticFilesStorage" if IS_PLAIN else "ManifestStaticFilesStorage")
}
