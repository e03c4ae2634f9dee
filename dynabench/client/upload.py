"""Files that go to the server in pieces: flows."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from dynabench.client import types
from dynabench.client.archive import digest_in, packed, packed_name
from dynabench.client.errors import Refused
from dynabench.client.flow import Flow, Work, method
from dynabench.client.http import Asking
from dynabench.client.progress import bytes_shown


class Uploading(Asking):
    """What uploads, and the methods about files that were uploaded."""

    def _upload(self, path: Path) -> Flow[str]:
        """The id of an upload of a file, or a model's folder; goes on with one of the same bytes.

        The server knows it by its name, which holds the digest: so nothing is kept here.
        """
        with (yield Work(lambda: packed(path))) as file:
            return (yield from self._upload_open(packed_name(path), file))

    def _upload_open(self, file_name: str, file: IO[bytes]) -> Flow[str]:
        size, digest = file.seek(0, os.SEEK_END), (yield Work(lambda: digest_in(file)))
        ending = "".join(Path(file_name).suffixes[-2:])  # as .jsonl.gz
        name = f"{file_name.removesuffix(ending)[:100]}.{digest}{ending[-20:]}"
        known: list[types.Upload] = yield from self._all("/uploads/")
        here = [one for one in known if (one["file_name"], one["size"]) == (name, size)]
        upload = here[0] if here else None
        if upload is None:
            body = {"file_name": name, "size": size}
            upload = yield from self._write("POST", "/uploads/", body)
        with bytes_shown(file_name, size, upload["received"], is_shown=self.progress) as show:
            show(upload["received"])
            yield from self._send_pieces(file, upload, show)
        return upload["id"]

    def _send_pieces(
        self, file: IO[bytes], upload: types.Upload, show: Callable[[int], object]
    ) -> Flow[None]:
        """What the server lacks, piece by piece; from where it says when that changed meanwhile."""
        address, here = f"/uploads/{upload['id']}/", upload["received"]
        while here < upload["size"]:
            file.seek(here)
            piece = file.read(upload["piece_bytes"])
            at = {"offset": here}
            try:
                now = yield from self._write("PUT", address, params=at, content=piece)
            except Refused as error:
                now = yield from self._get(address)
                if error.code != "offset" or now["received"] == here:
                    raise
            here = now["received"]
            show(here)

    @method
    def uploads(self) -> Flow[list[types.Upload]]:
        """One's files that are not submitted yet; each is kept for three days."""
        return self._all("/uploads/")

    @method
    def discard_upload(self, upload_id: str) -> Flow[None]:
        """Throw one of them away."""
        return self._write("DELETE", f"/uploads/{upload_id}/")
