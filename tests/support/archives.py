"""Archives as strangers might send them."""

import io
import tarfile
import zipfile
from pathlib import Path


def tar_of(files, **changes):
    """A tar archive; `changes` of a TarInfo apply to each member."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=changes.pop("format", None)) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in changes.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def zipped(folder: Path, **more: bytes) -> bytes:
    """A zip of a folder, in which these files are others."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.iterdir():
            if path.name not in more:
                file.write(path, f"model/{path.name}")
        for name, data in more.items():
            file.writestr(f"model/{name}", data)
    return archive.getvalue()


def zip_of(files) -> bytes:
    """A zip archive of files by name."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in files.items():
            file.writestr(name, data)
    return archive.getvalue()
