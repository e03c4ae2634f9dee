"""The download of this site's version of the Python client, for `pip install URL`."""

import runpy
import tomllib
import zipfile
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

CLIENT_FOLDER = Path("dynabench", "client")


@login_not_required
@require_safe
def send_client_archive(request: HttpRequest) -> HttpResponse:
    """Download the client's source folder, with the files of the server that its build needs."""
    return HttpResponse(build_archive(), content_type="application/zip")


@lru_cache(maxsize=1)
def build_archive() -> bytes:
    """Return the client's ZIP archive, a few hundred files. The same files give the same bytes."""
    base_folder = Path(settings.BASE_DIR)
    project = tomllib.loads((base_folder / CLIENT_FOLDER / "pyproject.toml").read_text())
    # Not imported: the web process loads no client.
    freshness = runpy.run_path(str(base_folder / CLIENT_FOLDER / "freshness.py"))
    server_sources = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"][
        "server"
    ]
    files = set()
    for name in [CLIENT_FOLDER, *freshness["SOURCES"], *server_sources]:
        source = base_folder / name
        if source.is_dir():
            files |= set(source.rglob("*"))
        else:
            files.add(source)
    # They are made where the wheel is built; here they may be missing, or of another version.
    files -= {base_folder / CLIENT_FOLDER / name for name in freshness["GENERATED"]}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            if file.is_file() and "__pycache__" not in file.parts:
                entry = zipfile.ZipInfo(
                    str(file.relative_to(base_folder))
                )  # of 1980, so always the same
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()
