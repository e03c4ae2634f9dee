"""Archives as strangers might send them."""

import io
import tarfile


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
