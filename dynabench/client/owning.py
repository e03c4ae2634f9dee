"""What owners and editors do with a task: its configuration, people, rounds, contexts, targets."""

from pathlib import Path
from typing import Literal, Unpack

from dynabench.client.asking import Asking
from dynabench.client.flow import Flow, method
from dynabench.client.types import (
    ChangedConfig,
    Config,
    Context,
    ImportedContexts,
    Round,
    RoundPlan,
)


class Owning(Asking):
    """The methods for owners and editors."""

    @method
    def config(self, task: str) -> Flow[Config]:
        """A task's configuration as it is stored, and its `version`; for members."""
        return self._get(f"/tasks/{task}/config/")

    @method
    def save_config(
        self, task: str, config_text: str, version: str, dry_run: bool = False
    ) -> Flow[ChangedConfig]:
        """Store another configuration; what differs is in `diff`.

        version: of the text that was edited. dry_run: only check it. Raises Invalid with a message
        for each line, Refused (`stale`) where somebody else has changed it meanwhile.
        """
        body = {"config_text": config_text, "version": version, "dry_run": dry_run}
        return self._write("PUT", f"/tasks/{task}/config/", body)

    @method
    def create_round(self, task: str, **plan: Unpack[RoundPlan]) -> Flow[Round]:
        """Plan the next round, such as `targets=["nli-2"], max_collected=5000`. Raises Invalid."""
        return self._write("POST", f"/tasks/{task}/rounds/", plan)

    @method
    def change_round(self, task: str, round: int, **plan: Unpack[RoundPlan]) -> Flow[Round]:
        """Change what is told of a round. Raises Invalid, Refused (`fixed`) once it was opened."""
        return self._write("PATCH", f"/tasks/{task}/rounds/{round}/", plan)

    @method
    def set_round_state(
        self, task: str, round: int, state: Literal["draft", "ready", "open", "paused", "closed"]
    ) -> Flow[Round]:
        """Open, pause or close a round, or take it back. Raises Refused with what it lacks."""
        return self._write("POST", f"/tasks/{task}/rounds/{round}/state/", {"state": state})

    @method
    def contexts(self, task: str, round: int) -> Flow[list[Context]]:
        """All contexts of a round, for members."""
        return self._all(f"/tasks/{task}/rounds/{round}/contexts/")

    @method
    def import_contexts(
        self,
        task: str,
        round: int,
        path: str | Path,
        dry_run: bool = False,
        skip_bad: bool = False,
    ) -> Flow[ImportedContexts]:
        """Bring the contexts of a file, .jsonl or .csv, into a round; what it brought.

        dry_run: only tell what it would bring. skip_bad: store the good lines; otherwise one bad
        line refuses all. Raises FileNotFoundError, ValueError, and Invalid with each bad line.
        """
        file = Path(path)
        if file.suffix not in (".jsonl", ".csv"):
            raise ValueError(f"{file}: name the file .jsonl or .csv, after its format.")
        body = {
            "format": file.suffix[1:],
            "text": file.read_bytes().decode(),
            "dry_run": dry_run,
            "skip_bad": skip_bad,
        }
        return self._write("POST", f"/tasks/{task}/rounds/{round}/contexts/", body)

    @method
    def retire_context(
        self, task: str, round: int, context_id: int, is_retired: bool = True
    ) -> Flow[Context]:
        """Hand a context out no more; or, with False, again."""
        address = f"/tasks/{task}/rounds/{round}/contexts/{context_id}/"
        return self._write("PATCH", address, {"is_retired": is_retired})
