"""Submitting models, and what becomes of them."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Unpack

from dynabench.client import types
from dynabench.client.archive import own_name, size_of
from dynabench.client.errors import EvaluationFailed, QuotaReached
from dynabench.client.flow import Flow, Work, method
from dynabench.client.http import Following
from dynabench.client.upload import Uploading

GOOD = ("accepted", "scored", "published")
"""Phases in which a model stays that did not fail."""


def _on(gpus: int) -> dict[str, Any]:
    """What is asked of the site where a model wants a GPU."""
    return {"gpus": gpus} if gpus else {}


class Models(Uploading, Following):
    """The methods about models. team, where one is submitted: the name of a team of one's own."""

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
        """Submit a model's folder, or an archive of it; the model's id.

        Of the folder go configuration, safetensors, tokenizer and card. name: the folder's with the
        time, unless told. gpus: 1, if the site has any. What an earlier try sent of the same bytes
        is not sent again. Raises FileNotFoundError, ValueError, Invalid, QuotaReached.
        """
        path = Path(model_path)
        fields: dict[str, Any] = {"team": team, **_on(gpus)}
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
        """Submit a file of JSON lines that answers a set's inputs; the model's id."""
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
        """Submit training rows as JSON lines, from which the task's one model learns; its id."""
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
        """Submit an image: a file of `docker save`, or `registry/name@sha256:…`; the model's id.

        adapter: how it is asked: `jsonl`, `dynalab` or `dynabench2`. gpus: 1, if the site has any.
        """
        fields: dict[str, Any] = {"adapter": adapter, "team": team, **_on(gpus)}
        path = Path(image)
        if path.is_file():
            return self._submit(task, "image", name or path, card, fields, path)
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
        """Submit a model of the hub by its id and full commit; the model's id."""
        fields = {"source": source, "revision": revision, "team": team, **_on(gpus)}
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
        """Submit a language model that writes its answers on the server; the model's id.

        model: its folder, an archive of it, or a hub id with its full commit, `org/name@COMMIT`.
        chat: prompt, template, examples; left out, the task's own words. base: of an adapter.
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
        """Submit the address of a model that answers over HTTPS; the model's id.

        secret: a bearer token that it asks for; the server keeps it encrypted and shows it nobody.
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
        """Submit a chat model behind an OpenAI-compatible interface; the model's id.

        url: its base URL, such as https://api.example.org/v1. chat: `model`, and what else there is
        to say: prompt, examples, price, cap. secret: its key, kept encrypted.
        """
        fields = {"source": url, "secret": secret, "chat": chat, "team": team}
        return self._submit(task, "chat", name, card, fields)

    @method
    def estimate_chat(self, task: str, chat: types.Chat) -> Flow[types.Estimate]:
        """What the evaluations of a chat model will cost on the sets of now; nobody is asked."""
        return self._write("POST", f"/tasks/{task}/models/estimate/", {**chat})

    @method
    def change_cap(self, model_id: str, most_cost: float) -> Flow[types.ToldChat]:
        """Change what all evaluations of a chat model may cost together."""
        return self._write("POST", f"/models/{model_id}/cap/", {"most_cost": most_cost})

    def _submit(
        self,
        task: str,
        kind: str,
        name: str | Path,
        card: types.Card,
        fields: dict[str, Any],
        file: Path | None = None,
    ) -> Flow[str]:
        """The new model's id. name: a path gives one that was not taken before.

        The quota is asked for first, so that nobody packs, hashes or sends gigabytes in vain.
        """
        team = fields.pop("team")
        if file:
            size = yield Work(lambda: size_of(file))
            yield from self._check_quota(task, size, team)
            fields |= {"upload": (yield from self._upload(file))}
        if isinstance(name, Path):
            now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
            name = f"{own_name(name)[:80]} {now}"
        body = {"kind": kind, "name": name, "card": card, **fields}
        if team:
            body["team"] = team
        model: types.WholeModel = yield from self._write("POST", f"/tasks/{task}/models/", body)
        return model["id"]

    def _check_quota(self, task: str, size: int, team: str) -> Flow[None]:
        quota = yield from self._quota(task, team)
        if not quota["left"]:
            free_at = (quota["free_at"] or "")[:16].replace("T", " ")
            when = f" The next one is free at {free_at} UTC." if free_at else ""
            who = f"You have, or your team {team} has," if team else "You have"
            raise QuotaReached(f"{who} submitted all models of today.{when}", code="quota")
        most = quota.get("largest_bytes", size)  # servers of before do not tell
        if size > most:
            raise ValueError(f"It has {size:,} bytes; you may send {most:,} bytes at most now.")

    def _quota(self, task: str, team: str) -> Flow[types.Quota]:
        named = {"team": team} if team else {}
        return self._get(f"/tasks/{task}/quota/", **named)

    @method
    def models(self, task: str | None = None) -> Flow[list[types.Model]]:
        """A task's published models; without a task one's own."""
        return self._all(f"/tasks/{task}/models/" if task else "/me/models/")

    @method
    def model(self, model_id: str) -> Flow[types.WholeModel]:
        """A model, and how far it is."""
        return self._get(f"/models/{model_id}/")

    @method
    def runs(self, model_id: str) -> Flow[list[types.Run]]:
        """A model's evaluations."""
        return self._all(f"/models/{model_id}/runs/")

    @method
    def logs(self, model_id: str, run_id: str | None = None) -> Flow[str]:
        """What the model wrote in an evaluation; without a run in the check at its arrival."""
        run = f"runs/{run_id}/" if run_id else ""
        found: types.WholeModel | types.WholeRun = yield from self._get(f"/models/{model_id}/{run}")
        return found["log"]

    @method
    def wrong(self, model_id: str, run_id: str, page: int = 1) -> Flow[types.WrongPage]:
        """The examples that a model did not get wholly right, where one may read them; 20 a page.

        `next_page` is None on the last one.
        """
        return self._get(f"/models/{model_id}/runs/{run_id}/wrong/", page=page)

    @method
    def scores(self, model_id: str) -> Flow[list[types.Score]]:
        """Return every number that was measured of a model.

        `is_rounded`: the set is sealed, so the value is one of a few steps (and others' may lack).
        """
        return self._all(f"/models/{model_id}/scores/")

    @method
    def near_copies(self, model_id: str) -> Flow[list[types.NearCopy]]:
        """Published models whose answers are nearly the same; for those who own model or task."""
        return self._get(f"/models/{model_id}/near-copies/")

    @method
    def llm_scores(self, model_id: str) -> Flow[list[types.LlmScore]]:
        """What language models as judges say of it, each with its agreement with people."""
        return self._get(f"/models/{model_id}/llm-scores/")

    @method
    def download_predictions(
        self, model_id: str, evaluation_set: str, to: str | Path = "."
    ) -> Flow[Path]:
        """The file with what a model answered on a set, as JSON lines, where one may have it."""
        target = Path(to) / f"{model_id}-{evaluation_set}.predictions.jsonl"
        yield from self._fetch(f"/models/{model_id}/predictions/{evaluation_set}/", target)
        return target

    @method
    def get_results(
        self, model_id: str, wait: bool = True, timeout: float | None = None
    ) -> Flow[types.Results]:
        """A model's scores, ranks and Dynascore, once all its evaluations are over.

        In `scores`, `is_rounded` marks those on sealed sets, which are one of a few steps.
        wait: False returns at once what there is. timeout: seconds to wait at most. Raises
        EvaluationFailed (with the end of the log), TimedOut.
        """

        def ask() -> Flow[types.Results]:
            return self._get(f"/models/{model_id}/results/")

        results = yield from self._follow(ask, _stands, timeout) if wait else ask()
        return _checked(results)

    @method
    def quota(self, task: str, team: str = "") -> Flow[types.Quota]:
        """How many models one may still submit to a task today; for a team, as it allows, too."""
        return self._quota(task, team)

    @method
    def update_card(self, model_id: str, **card: Unpack[types.Card]) -> Flow[types.WholeModel]:
        """Change a model's card: `description`, `languages`, `license` …"""
        return self._write("PATCH", f"/models/{model_id}/", {"card": card})

    @method
    def publish(self, model_id: str) -> Flow[types.WholeModel]:
        """Show a model to everybody who sees its task."""
        return self._write("POST", f"/models/{model_id}/publish/")

    @method
    def unpublish(self, model_id: str) -> Flow[types.WholeModel]:
        """Show it to oneself and the task's owners only."""
        return self._write("POST", f"/models/{model_id}/unpublish/")

    @method
    def cancel(self, model_id: str) -> Flow[types.WholeModel]:
        """End what is not over of its check and evaluations."""
        return self._write("POST", f"/models/{model_id}/cancel/")

    @method
    def withdraw(self, model_id: str) -> Flow[types.WholeModel]:
        """Take a model back for good: its files, name and card go."""
        return self._write("POST", f"/models/{model_id}/withdraw/")

    @method
    def hide_names(self, model_id: str, until: date | None) -> Flow[types.WholeModel]:
        """Hide the names of model and owner before a day; None shows them from now on."""
        body = {"until": until.isoformat() if until else None}
        return self._write("POST", f"/models/{model_id}/anonymous/", body)

    @method
    def publish_on(self, model_id: str, day: date | None) -> Flow[types.WholeModel]:
        """Publish a model on a day by itself, once it has a score; None: not by itself."""
        body = {"day": day.isoformat() if day else None}
        return self._write("POST", f"/models/{model_id}/embargo/", body)

    @method
    def run_again(self, model_id: str, run_id: str) -> Flow[types.Run]:
        """Repeat an evaluation that failed through the platform's fault. Raises Refused."""
        return self._write("POST", f"/models/{model_id}/runs/{run_id}/again/")


def _stands(results: types.Results) -> tuple[str, bool]:
    return results["sentence"], results["is_over"]


def _checked(results: types.Results) -> types.Results:
    """The results of a model that did not fail. Raises EvaluationFailed."""
    if not results["is_over"] or results["phase"] in GOOD:
        return results
    error = results["error"] or {}
    raise EvaluationFailed(
        error.get("outcome") or results["phase"],
        error.get("sentence") or results["sentence"],
        limit=error.get("limit") or "",
        measured=error.get("measured") or "",
        log=error.get("log") or "",
    )
