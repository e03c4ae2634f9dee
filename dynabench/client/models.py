"""The part of the client that submits models and follows their evaluations."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

from dynabench.client import types
from dynabench.client.archive import find_own_name, measure_size
from dynabench.client.errors import EvaluationFailed, QuotaReached
from dynabench.client.flow import Flow, Work, method
from dynabench.client.http import Polling
from dynabench.client.upload import Uploading

GOOD_STATES = ("accepted", "scored", "published")
"""The phases of a model that has not failed."""


def _build_gpu_fields(gpus: int) -> dict[str, Any]:
    """Return the field for GPUs in a submission; an empty dictionary if `gpus` is 0."""
    return {"gpus": gpus} if gpus else {}


class Models(Uploading, Polling):
    """The client's methods for models.

    team: the name of your team, to submit a model for it.
    """

    # Submitting. Each kind sends its own fields to one address (`_submit`), with a file or without.

    @method
    def submit_model(
        self,
        model_path: str | Path,
        task: str,
        name: str | None = None,
        team: str = "",
        gpus: int = 0,
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit a model folder, or an archive of one; return the model's id.

        Of a folder, only the configuration, safetensors, tokenizer and card are sent. name: by
        default the folder's name and the current time. gpus: 1 to run it on one of the site's GPUs.
        An interrupted upload of the same bytes is resumed. Raises FileNotFoundError, ValueError,
        Invalid, QuotaReached.
        """
        path = Path(model_path)
        fields: dict[str, Any] = {"team": team, **_build_gpu_fields(gpus)}
        return self._submit(task, "directory", name or path, card, fields, path)

    @method
    def submit_predictions(
        self,
        path: str | Path,
        task: str,
        evaluation_set: str,
        name: str | None = None,
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit a file of JSON lines that answers a set's inputs; return the model's id."""
        file = Path(path)
        fields = {"evaluation_set": evaluation_set, "team": team}
        return self._submit(task, "predictions", name or file, card, fields, file)

    @method
    def submit_rows(
        self,
        path: str | Path,
        task: str,
        name: str | None = None,
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit training rows as JSON lines; return the id of the model trained on them."""
        file = Path(path)
        return self._submit(task, "rows", name or file, card, {"team": team}, file)

    @method
    def submit_image(
        self,
        image: str | Path,
        task: str,
        name: str | None = None,
        adapter: str = "jsonl",
        gpus: int = 0,
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit an image; return the model's id.

        image: a file of `docker save`, or `registry/name@sha256:…`. adapter: the protocol of
        the image: `jsonl`, `dynalab` or `dynabench2`. gpus: 1 to run it on one of the site's GPUs.
        """
        fields: dict[str, Any] = {"adapter": adapter, "team": team, **_build_gpu_fields(gpus)}
        path = Path(image)
        if path.is_file():
            return self._submit(task, "image", name or path, card, fields, path)
        # The name of an image is shown without its digest.
        path = Path(str(image).partition("@")[0])
        fields["source"] = str(image)
        return self._submit(task, "image", name or path, card, fields)

    @method
    def submit_hub(
        self,
        source: str,
        revision: str,
        task: str,
        name: str | None = None,
        team: str = "",
        gpus: int = 0,
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit a model on the Hugging Face Hub; return the model's id.

        source: its id there. revision: the full hash of the commit.
        """
        fields = {"source": source, "revision": revision, "team": team, **_build_gpu_fields(gpus)}
        return self._submit(task, "hub", name or Path(source), card, fields)

    @method
    def submit_llm(
        self,
        model: str | Path,
        task: str,
        name: str | None = None,
        chat: types.Chat | None = None,
        base: str = "",
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit a language model that generates its answers on the server; return the model's id.

        model: its folder, an archive of it, or a hub id with its full commit,
        `org/name@COMMIT`. chat: prompt, template and examples; by default the task's.
        base: the base model of an adapter.
        """
        fields: dict[str, Any] = {"chat": chat or {}, "base": base, "team": team}
        path = Path(model)
        if path.exists():
            return self._submit(task, "llm", name or path, card, fields, path)
        fields["source"], _, fields["revision"] = str(model).partition("@")
        return self._submit(task, "llm", name or Path(fields["source"]), card, fields)

    @method
    def submit_endpoint(
        self,
        url: str,
        task: str,
        name: str,
        adapter: str = "jsonl",
        secret: str = "",
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit the URL of a model that answers over HTTPS; return the model's id.

        secret: the bearer token that it requires. The server stores it encrypted and never
        shows it.
        """
        fields = {"source": url, "adapter": adapter, "secret": secret, "team": team}
        return self._submit(task, "endpoint", name, card, fields)

    @method
    def submit_chat(
        self,
        url: str,
        task: str,
        name: str,
        chat: types.Chat,
        secret: str = "",
        team: str = "",
        **card: Unpack[types.Card],
    ) -> Flow[str]:
        """Submit a chat model behind an OpenAI-compatible interface; return the model's id.

        url: its base URL, such as https://api.example.org/v1. chat: `model`, and optionally prompt,
        examples, price and cap. secret: its key, which is stored encrypted.
        """
        fields = {"source": url, "secret": secret, "chat": chat, "team": team}
        return self._submit(task, "chat", name, card, fields)

    @method
    def estimate_chat(self, task: str, chat: types.Chat) -> Flow[types.Estimate]:
        """Return the expected cost of evaluating a chat model on today's sets.

        Sends nothing to the model.
        """
        return self._write("POST", f"/tasks/{task}/models/estimate/", dict(chat))

    def _submit(
        self,
        task: str,
        kind: str,
        name: str | Path,
        card: types.Card,
        fields: dict[str, Any],
        file: Path | None = None,
    ) -> Flow[str]:
        """Submit a model and return its id.

        name: the model's name, or a path from which a new name is made.

        Checks the quota first, before gigabytes are packed, hashed and sent in vain.
        """
        # Sent only where there is one: older servers know no teams.
        team = fields.pop("team")
        if file:
            # Looks at every file of a folder, which may be on a slow disk.
            size = yield Work(lambda: measure_size(file))
            yield from self._check_quota(task, size, team)
            fields["upload"] = yield from self._upload(file)
        if isinstance(name, Path):
            now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
            name = f"{find_own_name(name)[:80]} {now}"
        # The kind's own fields lie beside those of all kinds.
        body = {"kind": kind, "name": name, "card": card, **fields}
        if team:
            body["team"] = team
        model: types.WholeModel = yield from self._write("POST", f"/tasks/{task}/models/", body)
        return model["id"]

    def _check_quota(self, task: str, size: int, team: str) -> Flow[None]:
        """Check that the model may be submitted today and is not too large.

        Raises QuotaReached or ValueError.
        """
        quota = yield from self._fetch_quota(task, team)
        if not quota["left"]:
            subject = "You have"
            if team:
                # A model for a team counts for both.
                subject = f"You have, or your team {team} has,"
            message = f"{subject} reached today's limit of submissions."
            if quota["free_at"]:
                free_at = quota["free_at"][:16].replace("T", " ")
                message += f" You can submit again at {free_at} UTC."
            raise QuotaReached(message, code="quota")
        max_bytes = quota.get("largest_bytes", size)  # older servers do not say it
        if size > max_bytes:
            raise ValueError(
                f"The upload has {size:,} bytes, but your current limit is {max_bytes:,} bytes."
            )

    def _fetch_quota(self, task: str, team: str) -> Flow[types.Quota]:
        """Return your quota for a task, or a team's."""
        return self._get(f"/tasks/{task}/quota/", team=team or None)

    # Reading: models, their evaluations, and what they reached.

    @method
    def models(self, task: str | None = None) -> Flow[list[types.Model]]:
        """Return a task's published models, or, if `task` is None, your own models."""
        return self._iterate_pages(f"/tasks/{task}/models/" if task else "/me/models/")

    @method
    def logs(self, model_id: str, run_id: str | None = None) -> Flow[str]:
        """Return a model's log of one evaluation.

        run_id: the evaluation; by default the check after the submission.
        """
        run_path = f"runs/{run_id}/" if run_id else ""
        address = f"/models/{model_id}/{run_path}"
        model_or_run: types.WholeModel | types.WholeRun = yield from self._get(address)
        return model_or_run["log"]

    @method
    def download_predictions(
        self, model_id: str, evaluation_set: str, to: str | Path = "."
    ) -> Flow[Path]:
        """Download a model's answers on a set as JSON lines; return the file's path."""
        target = Path(to) / f"{model_id}-{evaluation_set}.predictions.jsonl"
        yield from self._fetch(f"/models/{model_id}/predictions/{evaluation_set}/", target)
        return target

    @method
    def get_results(
        self, model_id: str, wait: bool = True, timeout: float | None = None
    ) -> Flow[types.ModelResults]:
        """Return a model's scores, ranks and Dynascore, once all its evaluations have ended.

        In `scores`, `is_rounded` marks scores on sealed sets, which are rounded to a few steps.
        wait: False returns the results so far at once. timeout: maximum seconds to wait. Raises
        EvaluationFailed (with the end of the log), TimedOut.
        """

        def fetch_results() -> Flow[types.ModelResults]:
            return self._get(f"/models/{model_id}/results/")

        results = (
            yield from self._poll_job(fetch_results, _describe_progress, timeout)
            if wait
            else fetch_results()
        )
        return _check_results(results)

    @method
    def quota(self, task: str, team: str = "") -> Flow[types.Quota]:
        """Return how many models you or your team may still submit to a task today."""
        return self._fetch_quota(task, team)

    # Changing a model's card, and joining a team.

    @method
    def update_card(self, model_id: str, **card: Unpack[types.Card]) -> Flow[types.WholeModel]:
        """Change a model's card: `description`, `languages`, `license` …"""
        return self._write("PATCH", f"/models/{model_id}/", {"card": card})

    @method
    def answer_invitation(self, invitation_id: int, accept: bool) -> Flow[None]:
        """Accept or decline an invitation to a team."""
        answer = "accept" if accept else "decline"
        return self._write("POST", f"/me/invitations/{invitation_id}/{answer}/")


def _describe_progress(results: types.ModelResults) -> tuple[str, bool]:
    """Return (a model's progress as a sentence, whether all its evaluations have ended)."""
    return results["sentence"], results["is_over"]


def _check_results(results: types.ModelResults) -> types.ModelResults:
    """Return the results, unless the model failed. Raises EvaluationFailed."""
    # Without `wait` a model may still be on its way.
    if not results["is_over"] or results["phase"] in GOOD_STATES:
        return results
    error = results["error"] or {}
    raise EvaluationFailed(
        error.get("outcome") or results["phase"],
        error.get("sentence") or results["sentence"],
        limit=error.get("limit") or "",
        measured=error.get("measured") or "",
        log=error.get("log") or "",
    )
