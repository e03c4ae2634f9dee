"""The methods of a task's owners: its configuration, people, rounds, contexts and targets."""

import base64
import codecs
import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

Role = Literal["owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge"]

BINARY = ("xlsx", "xls", "ods", "zip")
FORMATS = {name: name for name in ("jsonl", "csv", "tsv", "txt", *BINARY)} | {"ndjson": "jsonl"}
"""Endings of files of contexts, and what the API calls each."""


class Owning(Asking):
    """The methods for owners and editors."""

    # The task itself, and the approval without which a task that was begun here stays private.

    @method
    def create_task(self, **task: Unpack[types.NewTask]) -> Flow[types.MadeTask]:
        """Create a task of a `code` and a `config_text`; for administrators.

        Raises Invalid with a message for each line, Refused (`exists`), PermissionDenied.
        """
        return self._write("POST", "/tasks/", task)

    @method
    def change_task(self, task: str, **change: Unpack[types.TaskChange]) -> Flow[types.FullTask]:
        """Show a task or hide it, let people without an account try it or not."""
        return self._write("PATCH", f"/tasks/{task}/", change)

    @method
    def approval(self, task: str) -> Flow[types.Approval]:
        """Return whether a task needs approval, and how far the request for it is; for owners."""
        return self._get(f"/tasks/{task}/approval/")

    @method
    def request_approval(
        self, task: str, **request: Unpack[types.NewApproval]
    ) -> Flow[types.Approval]:
        """Ask that a private task may open to others, with its `goal` and `people`; for owners.

        Raises Refused (`approved`, `waiting`), Invalid.
        """
        return self._write("POST", f"/tasks/{task}/approval/", request)

    # People: members with their roles, and invitations, by which somebody becomes one.

    @method
    def members(self, task: str) -> Flow[list[types.Member]]:
        """Return the members of a task and their roles."""
        return self._all(f"/tasks/{task}/members/")

    @method
    def add_member(self, task: str, email: str, role: Role) -> Flow[types.Member]:
        """Give an account a role; for owners. Raises Invalid, Refused."""
        return self._write("POST", f"/tasks/{task}/members/", {"email": email, "role": role})

    @method
    def change_member(self, task: str, member_id: int, role: Role) -> Flow[types.Member]:
        """Give a member another role; for owners. Raises Refused for the last owner."""
        return self._write("PATCH", f"/tasks/{task}/members/{member_id}/", {"role": role})

    @method
    def remove_member(self, task: str, member_id: int) -> Flow[None]:
        """Remove a member; for owners. Raises Refused for the last owner."""
        return self._write("DELETE", f"/tasks/{task}/members/{member_id}/")

    @method
    def task_invitations(self, task: str) -> Flow[list[types.Invitation]]:
        """Return all invitations with who accepted them, the newest first; for owners."""
        return self._all(f"/tasks/{task}/invitations/")

    @method
    def invite(self, task: str, email: str, role: Role, days: int = 14) -> Flow[types.Invitation]:
        """Email an address a link that makes one person a member; for owners. Raises Invalid."""
        body = {"email": email, "role": role, "days": days}
        return self._write("POST", f"/tasks/{task}/invitations/", body)

    @method
    def revoke_invitation(self, task: str, invitation_id: int) -> Flow[None]:
        """Revoke an invitation; for owners."""
        return self._write("DELETE", f"/tasks/{task}/invitations/{invitation_id}/")

    @method
    def join_task(self, key: str) -> Flow[types.Joined]:
        """Become a member by an invitation: the last part of its link. Raises Refused."""
        return self._write("POST", "/invitations/accept/", {"key": key})

    # Campaigns: how people are recruited. Their plans are made on pages.

    @method
    def campaigns(self, task: str) -> Flow[list[types.Campaign]]:
        """Return all campaigns of a task, the newest first; for owners."""
        return self._all(f"/tasks/{task}/campaigns/")

    @method
    def campaign(self, task: str, slug: str) -> Flow[types.WholeCampaign]:
        """Return a campaign with its numbers; for owners."""
        return self._get(f"/tasks/{task}/campaigns/{slug}/")

    @method
    def set_campaign_state(
        self, task: str, slug: str, state: str, ethics_name: str = ""
    ) -> Flow[types.WholeCampaign]:
        """Open, pause or close a campaign; for owners.

        Opening needs your name under its ethics statement. Raises Refused, Invalid.
        """
        body = {"state": state, "ethics_name": ethics_name}
        return self._write("PATCH", f"/tasks/{task}/campaigns/{slug}/", body)

    @method
    def choose_campaign_rounds(
        self, task: str, slug: str, rounds: Sequence[int]
    ) -> Flow[types.WholeCampaign]:
        """Choose the rounds in which people's work counts, by number; none: all that are open.

        Raises Refused, Invalid.
        """
        body = {"rounds": list(rounds)}
        return self._write("PATCH", f"/tasks/{task}/campaigns/{slug}/", body)

    # Assignments, which the API calls duties.

    @method
    def task_duties(self, task: str) -> Flow[list[types.Duty]]:
        """Return what members of a task are asked to write or judge; for owners and editors."""
        return self._all(f"/tasks/{task}/duties/")

    @method
    def set_duties(self, task: str, **duty: Unpack[types.NewDuty]) -> Flow[list[types.Duty]]:
        """Ask members, or with `emails=[]` everybody, to write or judge.

        Such as `kind="judge", emails=[…], amount=100, due_on="2026-12-04"`, or `share` and
        `overlap`.
        Raises Invalid, Refused.
        """
        return self._write("POST", f"/tasks/{task}/duties/", duty)

    @method
    def change_duty(
        self, task: str, duty_id: int, **change: Unpack[types.DutyChange]
    ) -> Flow[list[types.Duty]]:
        """Change the amount or share of an assignment, or its last day.

        Fields left out are unset.
        """
        return self._write("PUT", f"/tasks/{task}/duties/{duty_id}/", change)

    @method
    def end_duty(self, task: str, duty_id: int) -> Flow[None]:
        """End an assignment; what was done stays."""
        return self._write("DELETE", f"/tasks/{task}/duties/{duty_id}/")

    @method
    def duties(self) -> Flow[list[types.OwnDuty]]:
        """Return what owners of all tasks ask of oneself, the next due day first."""
        return self._all("/me/duties/")

    # The configuration. Who saves one says which version was edited, so that of two people who
    # edit at once one is refused.

    @method
    def config(self, task: str) -> Flow[types.Config]:
        """Return a task's configuration as it is stored, and its `version`; for members."""
        return self._get(f"/tasks/{task}/config/")

    @method
    def save_config(
        self, task: str, config_text: str, version: str, dry_run: bool = False
    ) -> Flow[types.ChangedConfig]:
        """Store another configuration; `diff` has what differs.

        version: of the text that was edited. dry_run: only check it. Raises Invalid with a message
        for each
        line, Refused (`stale`) where somebody else has changed it since.
        """
        body = {"config_text": config_text, "version": version, "dry_run": dry_run}
        return self._write("PUT", f"/tasks/{task}/config/", body)

    @method
    def dynabench_config(self, task: str, version: str = "1.0") -> Flow[types.DynabenchConfig]:
        """Return a task's configuration for Dynabench 1.0 or 2.0, with what is not in it.

        For members.
        Raises Invalid (`no_counterpart`) where it would be another task there.
        """
        return self._get(f"/tasks/{task}/config/dynabench/", version=version)

    @method
    def config_versions(self, task: str) -> Flow[list[types.ConfigVersion]]:
        """Return the former configurations of a task, the newest first; for editors."""
        return self._all(f"/tasks/{task}/config/versions/")

    @method
    def config_version(self, task: str, number: int) -> Flow[types.FullConfigVersion]:
        """Return a former configuration with its text. Raises NotFound."""
        return self._get(f"/tasks/{task}/config/versions/{number}/")

    @method
    def compare_configs(self, task: str, older: int, newer: int | None = None) -> Flow[str]:
        """Return the lines that differ between two versions; newer=None: the current one.

        Raises NotFound.
        """
        address = f"/tasks/{task}/config/versions/{older}/compare/"
        compared: types.ComparedConfigs = yield from self._get(address, to=newer)
        return compared["diff"]

    @method
    def return_config(
        self, task: str, number: int, version: str, dry_run: bool = False
    ) -> Flow[types.ChangedConfig]:
        """Store the text of an older version again. Raises as `save_config`.

        version: of the current text, as `config` returns it.
        """
        body = {"version": version, "dry_run": dry_run}
        return self._write("POST", f"/tasks/{task}/config/versions/{number}/return/", body)

    # Rounds: a plan is made, then the round is opened, closed and released (`Releasing.release`).

    @method
    def create_round(self, task: str, **plan: Unpack[types.RoundPlan]) -> Flow[types.Round]:
        """Plan the next round, such as `targets=["nli-2"], max_collected=5000`. Raises Invalid."""
        return self._write("POST", f"/tasks/{task}/rounds/", plan)

    @method
    def change_round(
        self, task: str, round: int, **plan: Unpack[types.RoundPlan]
    ) -> Flow[types.Round]:
        """Change the plan of a round. Raises Invalid, Refused (`fixed`) once it was opened."""
        return self._write("PATCH", f"/tasks/{task}/rounds/{round}/", plan)

    @method
    def set_round_state(
        self, task: str, round: int, state: Literal["draft", "ready", "open", "paused", "closed"]
    ) -> Flow[types.Round]:
        """Open, pause or close a round, or return it to an earlier state.

        Raises Refused with what the round lacks. A round whose targets are being loaded has
        `opening_since`, and opens when they are ready.
        """
        return self._write("POST", f"/tasks/{task}/rounds/{round}/state/", {"state": state})

    @method
    def replace_target(self, task: str, round: int, old: str, new: str) -> Flow[types.Round]:
        """Replace a broken target by another one, by name, before the round has an example.

        The new one is tested first. Raises Refused (`fixed`), Invalid.
        """
        body = {"old": old, "new": new}
        return self._write("POST", f"/tasks/{task}/rounds/{round}/replace-target/", body)

    # Contexts of a round. They are imported in batches, each of which can be undone.

    @method
    def contexts(self, task: str, round: int) -> Flow[list[types.Context]]:
        """Return all contexts of a round; for members."""
        return self._all(f"/tasks/{task}/rounds/{round}/contexts/")

    @method
    def import_contexts(
        self,
        task: str,
        round: int,
        path: str | Path,
        dry_run: bool = False,
        skip_bad: bool = False,
    ) -> Flow[types.ImportedContexts]:
        """Import the contexts of a file into a round; return what was imported.

        The file's name ends in .jsonl, .csv, .tsv, .xlsx, .xls, .ods (the first sheet), .txt (one
        context a
        line, where the task asks for a single text) or .zip, in upper or lower case; all but a .zip
        may be
        packed (.jsonl.gz). Texts are UTF-8, or UTF-16 with its mark. A .zip holds one table, and
        the
        pictures and recordings that it names; at most 20 MB.

        dry_run: only return what would be imported. skip_bad: store the good lines; otherwise one
        bad line
        refuses all. Raises FileNotFoundError, ValueError, and Invalid with each bad line.
        """
        format, text = _read_contexts(Path(path))
        body = {"format": format, "text": text, "dry_run": dry_run, "skip_bad": skip_bad}
        return self._write("POST", f"/tasks/{task}/rounds/{round}/contexts/", body)

    @method
    def retire_context(
        self, task: str, round: int, context_id: int, is_retired: bool = True
    ) -> Flow[types.Context]:
        """Retire a context, so that nobody gets it any more; or, with False, restore it."""
        address = f"/tasks/{task}/rounds/{round}/contexts/{context_id}/"
        return self._write("PATCH", address, {"is_retired": is_retired})

    @method
    def context_batches(self, task: str, round: int) -> Flow[list[types.ContextBatch]]:
        """Return the imports that brought a round's contexts."""
        return self._all(f"/tasks/{task}/rounds/{round}/context-batches/")

    @method
    def undo_import(self, task: str, round: int, batch_id: int) -> Flow[None]:
        """Undo an import of contexts. Raises Refused (`used`) once one was used."""
        return self._write("DELETE", f"/tasks/{task}/rounds/{round}/context-batches/{batch_id}/")

    # Targets, the models to fool, and the generator, which suggests texts to authors.

    @method
    def target_models(self, task: str) -> Flow[list[types.TargetModel]]:
        """Return a task's targets and their settings, without secrets."""
        return self._all(f"/tasks/{task}/target-models/")

    @method
    def add_target_model(
        self, task: str, **settings: Unpack[types.TargetSettings]
    ) -> Flow[types.TargetModel]:
        """Register a target, such as `name="nli-2", url="https://…"`. Raises Invalid, Refused."""
        return self._write("POST", f"/tasks/{task}/target-models/", settings)

    @method
    def change_target_model(
        self, task: str, target_id: int, **settings: Unpack[types.TargetSettings]
    ) -> Flow[types.TargetModel]:
        """Change a target's settings. Raises Invalid, Refused where it has a secret."""
        return self._write("PATCH", f"/tasks/{task}/target-models/{target_id}/", settings)

    @method
    def test_target_model(
        self, task: str, target_id: int, inputs: Mapping[str, Any]
    ) -> Flow[types.TargetTest]:
        """Send a target one example; return its `answer`, or the `failure`. Nothing is stored."""
        address = f"/tasks/{task}/target-models/{target_id}/test/"
        return self._write("POST", address, {"inputs": inputs})

    @method
    def generator(self, task: str) -> Flow[types.Generator]:
        """Return the model that suggests texts to authors. Raises NotFound where there is none."""
        return self._get(f"/tasks/{task}/generator/")

    @method
    def set_generator(
        self, task: str, **settings: Unpack[types.Generator]
    ) -> Flow[types.Generator]:
        """Give the task a generator, or change its settings. Raises Invalid, Refused."""
        return self._write("PUT", f"/tasks/{task}/generator/", settings)

    @method
    def remove_generator(self, task: str) -> Flow[None]:
        """Remove the task's generator."""
        return self._write("DELETE", f"/tasks/{task}/generator/")


def _read_contexts(file: Path) -> tuple[str, str]:
    """Return the format of a file of contexts and its text, of a binary one in base64.

    Raises FileNotFoundError, ValueError.
    """
    # Windows drops dots and spaces at the end of a name.
    name = file.name.lower().rstrip(". ")
    format = FORMATS.get(name.removesuffix(".gz").rpartition(".")[2])
    if format is None or name.endswith(".zip.gz"):
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise ValueError(f"{file}: name it after its format: {endings}.")
    # At once: such files have at most 20 MB.
    data = file.read_bytes()
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{file} is a damaged gzip: {error}.") from None
    if not data:
        raise ValueError(f"{file} is empty.")
    if format in BINARY:
        return format, base64.b64encode(data).decode()
    # Excel saves "Unicode text" so; without a mark UTF-16 cannot be told from other bytes.
    is_utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return format, data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not {error.encoding.upper()} (byte {error.start + 1})."
        ) from None
