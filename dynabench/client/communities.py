"""Communities: their tasks, the board across them, and one model for all of them."""

import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from dynabench.client import types
from dynabench.client.archive import own_name
from dynabench.client.boards import Weights
from dynabench.client.flow import Flow, Work, method
from dynabench.client.upload import Uploading


class Communing(Uploading):
    """The methods about communities."""

    @method
    def communities(self) -> Flow[list[types.Community]]:
        """The communities that one may see."""
        return self._all("/communities/")

    @method
    def community(self, slug: str) -> Flow[types.WholeCommunity]:
        """Its text, tasks and news; and the files that a model for all of them must bring."""
        return self._get(f"/communities/{slug}/")

    @method
    def community_board(
        self, slug: str, weights: Weights | None = None, track: str | None = None
    ) -> Flow[types.CommunityBoard]:
        """The board across its tasks. weights: of tasks, 0 to 8; its owners' unless told."""
        asked = {f"w_{name}": weight for name, weight in (weights or {}).items()}
        return self._get(f"/communities/{slug}/board/", **asked, track=track)

    @method
    def community_submissions(self, slug: str) -> Flow[list[types.Joint]]:
        """What one submitted to all of its tasks, the newest first."""
        return self._all(f"/communities/{slug}/submissions/")

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
        """Submit a model to all tasks that take its kind: all of them do, or none. Raises Invalid.

        model: `org/name@COMMIT` of a model on the hub; else a folder or an archive: of the model,
        or with `<task>/<set>.jsonl` for predictions and `<task>.jsonl` for training rows.
        """
        body: dict[str, Any] = {"kind": kind, "track": track, "description": description}
        if kind == "hub" or (kind == "llm" and not Path(model).exists()):
            body["source"], _, body["revision"] = str(model).partition("@")
            path = Path(body["source"])
        else:
            path = Path(model)
            body["upload"] = yield from self._upload_model(kind, path)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        body["name"] = name or f"{own_name(path)[:80]} {now}"
        made: types.Joint = yield from self._write(
            "POST", f"/communities/{slug}/submissions/", body
        )
        return made

    def _upload_model(self, kind: str, path: Path) -> Flow[str]:
        if kind in ("directory", "llm") or not path.is_dir():
            return (yield from self._upload(path))
        with (yield Work(lambda: _lines_in(path))) as file:
            return (yield from self._upload_open(f"{own_name(path)}.tar", file))


def _lines_in(folder: Path) -> IO[bytes]:
    """A tar of the folder's JSON lines, by their places in it; it has no name on the disk."""
    archive = TemporaryFile()  # noqa: SIM115 (its caller closes it)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in sorted(folder.rglob("*.jsonl")):
            tar.add(file, str(file.relative_to(folder)))
    return archive
