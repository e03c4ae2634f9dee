"""The site's own settings, with one more page: the least that a signed-in POST can do."""

from dynabench.settings import *  # noqa: F403
from dynabench.settings import STORAGES

ROOT_URLCONF = "bench.site_urls"
# Hashed names as in production, without compressing the files again in each run.
STORAGES["staticfiles"] = {
    "BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
}
