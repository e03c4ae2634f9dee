"""Communities: their tasks, the board across them, and one model for all of them."""

import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.archive import own_name
from dynabench.client.boards import Weights
from dynabench.client.flow import Flow, Work, method
from dynabench.client.upload import Uploading


class Communing(Uploading):
    """The methods about communities."""

    # Reading communities, and submitting a model to all tasks of one.

    @method
    def communities(self) -> Flow[list[types.Community]]:
        """Return the communities that one may see."""
        return self._all("/communities/")

    @method
    def community(self, slug: str) -> Flow[types.WholeCommunity]:
        """Return a community: its text, tasks and news.

        `files` names those that a model for all of its tasks must bring.
        """
        return self._get(f"/communities/{slug}/")

    @method
    def community_board(
        self, slug: str, weights: Weights | None = None, track: str | None = None
    ) -> Flow[types.CommunityBoard]:
        """Return the board across a community's tasks.

        weights: of tasks, 0 to 8; by default its owners'.
        """
        params = {f"w_{name}": weight for name, weight in (weights or {}).items()}
        return self._get(f"/communities/{slug}/board/", **params, track=track)

    @method
    def community_submissions(self, slug: str) -> Flow[list[types.Joint]]:
        """Return what one submitted to all tasks of a community, the newest first."""
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
        """Submit a model to all tasks that take its kind: all of them accept it, or none does.

        model: `org/name@COMMIT` of a model on the hub; else a folder or an archive: of the model,
        or with
        `<task>/<set>.jsonl` for predictions and `<task>.jsonl` for training rows. Raises Invalid.
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
        body["name"] = name or f"{own_name(path)[:80]} {now}"
        submission: types.Joint = yield from self._write(
            "POST", f"/communities/{slug}/submissions/", body
        )
        return submission

    # Founding a community: people propose one, and an administrator decides.

    @method
    def propose_community(self, name: str, slug: str, goal: str) -> Flow[types.CommunityProposal]:
        """Propose a community at the address `slug`; an administrator decides. Raises Invalid."""
        body = {"name": name, "slug": slug, "goal": goal}
        return self._write("POST", "/communities/proposals/", body)

    @method
    def community_proposals(self) -> Flow[list[types.CommunityProposal]]:
        """Return one's own proposals; for administrators also those that wait for a decision."""
        return self._all("/communities/proposals/")

    @method
    def decide_community(
        self, proposal_id: int, approve: bool, reason: str = ""
    ) -> Flow[types.CommunityProposal]:
        """Found a proposed community or decline it; for administrators."""
        body = {"approve": approve, "reason": reason}
        return self._write("PATCH", f"/communities/proposals/{proposal_id}/", body)

    # Running a community: its page, owners, news and tasks.

    @method
    def change_community(
        self, slug: str, **change: Unpack[types.CommunityChange]
    ) -> Flow[types.WholeCommunity]:
        """Change a community's name, text, tracks, or whether everybody sees it.

        This method and those below are for owners.
        """
        return self._write("PATCH", f"/communities/{slug}/", change)

    @method
    def community_owners(self, slug: str) -> Flow[list[types.CommunityOwner]]:
        """Return a community's owners, by pseudonym."""
        return self._get(f"/communities/{slug}/owners/")

    @method
    def add_community_owner(self, slug: str, email: str) -> Flow[list[types.CommunityOwner]]:
        """Make the account of this address an owner. Raises Invalid."""
        return self._write("POST", f"/communities/{slug}/owners/", {"email": email})

    @method
    def remove_community_owner(self, slug: str, owner_id: int) -> Flow[None]:
        """Remove an owner, also oneself. Raises Refused for the last one."""
        return self._write("DELETE", f"/communities/{slug}/owners/{owner_id}/")

    @method
    def post_news(self, slug: str, title: str, text: str) -> Flow[types.Post]:
        """Post news, in Markdown."""
        return self._write("POST", f"/communities/{slug}/news/", {"title": title, "text": text})

    @method
    def delete_news(self, slug: str, news_id: int) -> Flow[None]:
        """Delete news."""
        return self._write("DELETE", f"/communities/{slug}/news/{news_id}/")

    @method
    def community_entries(self, slug: str) -> Flow[list[types.CommunityEntry]]:
        """Return a community's tasks, also those that ask to join."""
        return self._get(f"/communities/{slug}/entries/")

    @method
    def join_community(self, slug: str, task: str) -> Flow[types.CommunityEntry]:
        """Ask that a task of one's own joins. Raises Invalid, Refused."""
        return self._write("POST", f"/communities/{slug}/entries/", {"task": task})

    @method
    def change_community_entry(
        self, slug: str, entry_id: int, **change: Unpack[types.CommunityEntryChange]
    ) -> Flow[types.CommunityEntry]:
        """Let a task in (`state="in"`), or weigh it (`weight`, 0 to 8)."""
        return self._write("PATCH", f"/communities/{slug}/entries/{entry_id}/", change)

    @method
    def remove_community_entry(self, slug: str, entry_id: int) -> Flow[None]:
        """Decline a task or take it out; for the task's owners, too."""
        return self._write("DELETE", f"/communities/{slug}/entries/{entry_id}/")

    def _upload_model(self, kind: str, path: Path) -> Flow[str]:
        """Upload what a community takes of a path; return the upload's id."""
        if kind in ("directory", "llm") or not path.is_dir():
            return (yield from self._upload(path))
        # Packing many files takes long, so it is work of its own, off the event loop.
        with (yield Work(lambda: _pack_lines(path))) as file:
            return (yield from self._upload_open(f"{own_name(path)}.tar", file))


def _pack_lines(folder: Path) -> IO[bytes]:
    """Return a tar of the folder's JSON lines, by their paths in it, without a name on the disk."""
    archive = TemporaryFile()  # noqa: SIM115 (its caller closes it)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in sorted(folder.rglob("*.jsonl")):
            tar.add(file, str(file.relative_to(folder)))
    return archive
