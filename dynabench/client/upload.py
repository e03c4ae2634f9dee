"""Uploads of files to the server, piece by piece."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from dynabench.client import types
from dynabench.client.archive import build_packed_name, compute_file_digest, open_packed
from dynabench.client.errors import Refused
from dynabench.client.flow import Flow, Work
from dynabench.client.http import Requesting
from dynabench.client.progress import show_bytes


class Uploading(Requesting):
    """The base class for classes whose methods upload files."""

    def _upload(self, path: Path) -> Flow[str]:
        """Upload a file or a model folder; return the upload's id.

        Resumes an interrupted upload of the same bytes. The upload's name contains the digest, so
        nothing has to be stored on this machine.
        """
        with (yield Work(lambda: open_packed(path))) as file:
            return (yield from self._upload_open(build_packed_name(path), file))

    def _upload_open(self, file_name: str, file: IO[bytes]) -> Flow[str]:
        """Upload an open file under this name; return the upload's id."""
        size = file.seek(0, os.SEEK_END)
        digest = yield Work(lambda: compute_file_digest(file))
        ending = "".join(Path(file_name).suffixes[-2:])  # as .jsonl.gz
        # The server limits names, and reads the kind of a file from its ending.
        name = f"{file_name.removesuffix(ending)[:100]}.{digest}{ending[-20:]}"
        uploads: list[types.Upload] = yield from self._iterate_pages("/uploads/")
        same_uploads = [
            each for each in uploads if (each["file_name"], each["size"]) == (name, size)
        ]
        if same_uploads:
            upload = same_uploads[0]
        else:
            body = {"file_name": name, "size": size}
            upload = yield from self._write("POST", "/uploads/", body)
        with show_bytes(file_name, size, upload["received"], is_shown=self.progress) as show:
            # Before the first piece, so that a resumed upload begins where it was.
            show(upload["received"])
            yield from self._send_pieces(file, upload, show)
        return upload["id"]

    def _send_pieces(
        self, file: IO[bytes], upload: types.Upload, show: Callable[[int], object]
    ) -> Flow[None]:
        """Send the bytes that the server lacks, piece by piece.

        show: called with the number of bytes sent so far.
        """
        address, offset = f"/uploads/{upload['id']}/", upload["received"]
        while offset < upload["size"]:
            file.seek(offset)
            piece = file.read(upload["piece_bytes"])
            params = {"offset": offset}
            try:
                upload_state = yield from self._write("PUT", address, params=params, content=piece)
            except Refused as error:
                # Another process may upload the same file: go on from where the server is.
                upload_state = yield from self._get(address)
                if error.code != "offset" or upload_state["received"] == offset:
                    raise
            offset = upload_state["received"]
            show(offset)
