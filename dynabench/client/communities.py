"""The part of the client about communities: their boards, and joint submissions."""

import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from dynabench.client import types
from dynabench.client.archive import find_own_name
from dynabench.client.boards import Weights
from dynabench.client.flow import Flow, Work, method
from dynabench.client.upload import Uploading


class CommunityMethods(Uploading):
    """The client's methods for community leaderboards and submissions."""

    @method
    def community_board(
        self, slug: str, weights: Weights | None = None, track: str | None = None
    ) -> Flow[types.CommunityBoard]:
        """Return the leaderboard across a community's tasks.

        weights: the weights of tasks, from 0 to 8; by default, the owners' weights.
        """
        params = {f"w_{name}": weight for name, weight in (weights or {}).items()}
        return self._get(f"/communities/{slug}/board/", **params, track=track)

    @method
    def submit_to_community(
        self,
        slug: str,
        kind: Literal["predictions", "llm", "hub", "directory", "rows"],
        model: str | Path,
        name: str | None = None,
        track: str = "",
        description: str = "",
    ) -> Flow[types.Joint]:
        """Submit a model to all of a community's tasks that accept its kind, or to none.

        All of them must accept the model. model: `org/name@COMMIT` for a model on the hub;
        otherwise a folder or an archive, either of the model or with `<task>/<set>.jsonl` for
        predictions and `<task>.jsonl` for training rows. Raises Invalid.
        """
        body: dict[str, Any] = {"kind": kind, "track": track, "description": description}
        # A language model may be a folder here, or a model on the hub.
        if kind == "hub" or (kind == "llm" and not Path(model).exists()):
            body["source"], _, body["revision"] = str(model).partition("@")
            path = Path(body["source"])
        else:
            path = Path(model)
            body["upload"] = yield from self._upload_model(kind, path)
        # The time makes the name one that was not used before.
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        body["name"] = name or f"{find_own_name(path)[:80]} {now}"
        submission: types.Joint = yield from self._write(
            "POST", f"/communities/{slug}/submissions/", body
        )
        return submission

    def _upload_model(self, kind: str, path: Path) -> Flow[str]:
        """Upload the files at a path that a community accepts; return the upload's id."""
        if kind in ("directory", "llm") or not path.is_dir():
            return (yield from self._upload(path))
        # Packing many files takes long, so it is work of its own, off the event loop.
        with (yield Work(lambda: _pack_lines(path))) as file:
            return (yield from self._upload_open(f"{find_own_name(path)}.tar", file))


def _pack_lines(folder: Path) -> IO[bytes]:
    """Return an unnamed temporary tar of the folder's JSON lines files, by their relative paths."""
    archive = TemporaryFile()  # noqa: SIM115 (its caller closes it)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in sorted(folder.rglob("*.jsonl")):
            tar.add(file, str(file.relative_to(folder)))
    return archive
