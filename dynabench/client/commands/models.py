"""`dynabench submit`, `status`, `logs`, `publish` and `withdraw`: a model's life on the server."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from dynabench.client import types
from dynabench.client.client import DynabenchClient
from dynabench.client.commands import communities
from dynabench.client.commands.results import describe_results
from dynabench.client.commands.shared import (
    STOPPED,
    USAGE,
    CommandError,
    add_command,
    format_table,
    open_client,
    parse_model_id,
    print_note,
    print_result,
)
from dynabench.client.commands.test import check_folder

NO_LOG = "The log is empty."


class NamedCard(types.Card, total=False):
    """The common fields of every submission: the model's card, and the team's name."""

    team: str


SubmitFunction = Callable[[DynabenchClient, argparse.Namespace, NamedCard], str]


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_submit(commands)
    parser = add_command(
        commands, "status", print_status, "show the state of one or all of your models"
    )
    parser.add_argument(
        "model", nargs="?", type=parse_model_id, metavar="MODEL", help="the model's ID"
    )
    parser = add_command(
        commands, "logs", print_logs, "show what a model wrote while it was checked and run"
    )
    parser.add_argument("model", type=parse_model_id, metavar="MODEL", help="the model's ID")
    parser.add_argument(
        "--run", type=UUID, help="only this evaluation; `dynabench status MODEL` lists IDs"
    )
    parser = add_command(
        commands, "publish", publish_model, "show a model to everyone who can see its task"
    )
    parser.add_argument("model", type=parse_model_id, metavar="MODEL", help="the model's ID")
    parser = add_command(
        commands, "unpublish", unpublish_model, "show a model only to you and the task's owners"
    )
    parser.add_argument("model", type=parse_model_id, metavar="MODEL", help="the model's ID")
    parser = add_command(commands, "withdraw", withdraw_model, "withdraw a model permanently")
    parser.add_argument("model", type=parse_model_id, metavar="MODEL", help="the model's ID")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_submit(commands: Any) -> None:
    """Add the command `submit` with one option per kind of submission."""
    parser = add_command(commands, "submit", submit_model, "submit a model and wait for its scores")
    model_group = parser.add_mutually_exclusive_group(required=True)
    model_group.add_argument("folder", nargs="?", help="a model's folder, or an archive of it")
    model_group.add_argument("--image", help="file from docker save, or registry/name@sha256:…")
    model_group.add_argument(
        "--predictions", metavar="FILE", help="answers to --set, as JSON lines"
    )
    model_group.add_argument("--rows", metavar="FILE", help="training rows, as JSON lines")
    model_group.add_argument("--hub", metavar="ID@COMMIT", help="a Hugging Face model")
    model_group.add_argument(
        "--llm", metavar="MODEL", help="a language model: a folder, or ID@COMMIT"
    )
    model_group.add_argument("--endpoint", metavar="URL", help="the URL of a running model")
    model_group.add_argument(
        "--chat", metavar="URL", help="the base URL of an OpenAI-compatible server"
    )
    destination_group = parser.add_mutually_exclusive_group(required=True)
    destination_group.add_argument("--task", help="the task's code, such as nli")
    destination_group.add_argument(
        "--community", help="a community's URL name; submits to all of its tasks"
    )
    parser.add_argument("--track", help="one of the community's tracks")
    parser.add_argument("--name", help="the model's name; default: the file name with the time")
    parser.add_argument("--team", metavar="NAME", help="submit it for one of your teams")
    parser.add_argument("--description", help="description for the model card, in Markdown")
    parser.add_argument("--set", help="evaluation set of the predictions")
    parser.add_argument(
        "--adapter",
        default="jsonl",
        choices=("jsonl", "dynalab", "dynabench2"),
        help="protocol of an image or endpoint",
    )
    parser.add_argument(
        "--secret-env", metavar="NAME", help="environment variable with the endpoint's bearer token"
    )
    parser.add_argument(
        "--base", help="base model of a LoRA adapter: org/name@COMMIT, or a model ID of this site"
    )
    parser.add_argument("--gpu", action="store_true", help="run it on one of the site's GPUs")
    _add_chat(parser.add_argument_group("chat models, and language models (without prices)"))
    parser.add_argument("--publish", action="store_true", help="publish it once it has a score")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the scores")


def _add_chat(group: Any) -> None:
    """Add the options of chat models and language models."""
    group.add_argument("--model", help="the model's name on the server")
    group.add_argument("--prompt", metavar="FILE", help="system message; default: the task's")
    group.add_argument(
        "--template", metavar="FILE", help="template of an example, with {field} for each field"
    )
    group.add_argument("--shots", type=int, help="number of training examples in the prompt")
    group.add_argument("--shots-seed", type=int, help="random seed for choosing these examples")
    group.add_argument("--temperature", type=float, help="sampling temperature; default: 0")
    group.add_argument("--seed", type=int, help="seed sent with each request")
    group.add_argument("--max-tokens", type=int, help="maximum tokens of an answer; default: 256")
    group.add_argument("--stop", action="append", help="text that ends an answer")
    group.add_argument(
        "--logprobs", action="store_true", default=None, help="ask for log-probabilities"
    )
    group.add_argument("--price-in", type=float, help="price per million input tokens")
    group.add_argument("--price-out", type=float, help="price per million output tokens")
    group.add_argument("--most-cost", type=float, help="cost limit for all evaluations together")
    group.add_argument(
        "--perturbed", action="store_true", default=None, help="measure robustness and fairness too"
    )
    group.add_argument(
        "--estimate", action="store_true", help="show the expected cost without submitting"
    )


def submit_model(args: argparse.Namespace) -> int:
    """Submit a model, wait for its scores unless --no-wait, and publish it with --publish."""
    if args.community:
        return communities.submit_to_community(args)
    # Publishing needs a score, for which this command would have to wait.
    if args.publish and args.no_wait:
        raise CommandError("--publish has to wait for the score, so remove --no-wait.", USAGE)
    client = open_client(args)
    if args.estimate:
        return _print_estimate(client, args)
    card: NamedCard = {"description": args.description} if args.description else {}
    if args.team:
        card["team"] = args.team
    # The parser requires exactly one of these options.
    kind = next(kind for kind in SUBMITTERS if getattr(args, kind))
    id = SUBMITTERS[kind](client, args, card)
    page = f"{client.server}/m/{id}/"
    print_note(f"Submitted: {page}")
    if args.no_wait:
        print_result(
            args, {"model": id, "page": page}, f"Follow its progress: dynabench status {id}"
        )
        return 0
    try:
        results = client.get_results(id)
        if args.publish:
            client.publish(id)
    # The submission stays: only the waiting was interrupted.
    except KeyboardInterrupt:
        retry_command = (
            "Stopped waiting. The evaluation continues on the server. Wait again: dynabench "
            f"results {id} --wait"
        )
        raise CommandError(retry_command, STOPPED) from None
    hint = "Published." if args.publish else f"Publish it: dynabench publish {id}"
    print_result(args, results, f"{describe_results(results)}\n{hint}")
    return 0


def _submit_folder(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit a model folder after checking it for what the server would refuse."""
    # Before the upload, which may be large.
    check_folder(client, args.task, args.folder)
    gpus = int(args.gpu)
    return client.submit_model(args.folder, args.task, args.name, gpus=gpus, **card)


def _submit_image(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit an image. Refuses a name that is neither a file nor in a registry."""
    if not Path(args.image).is_file() and "@sha256:" not in args.image:
        # A name that looks like a file's is a typing error, no image.
        if Path(args.image).suffix in (".tar", ".gz", ".tgz", ".zip"):
            raise CommandError(f"File not found: {args.image}.", USAGE)
        raise CommandError(
            f"{args.image} is not a file. Save the image first: docker save -o model.tar "
            f"{args.image}\nThen run: dynabench submit --image model.tar --task {args.task}",
            USAGE,
        )
    name, adapter, gpus = args.name, args.adapter, int(args.gpu)
    return client.submit_image(args.image, args.task, name, adapter, gpus, **card)


def _submit_predictions(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit a file of predictions for a set."""
    if not args.set:
        raise CommandError("Use --set to name the evaluation set of the predictions.", USAGE)
    return client.submit_predictions(args.predictions, args.task, args.set, args.name, **card)


def _submit_rows(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit training rows."""
    return client.submit_rows(args.rows, args.task, args.name, **card)


def _submit_hub(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit a model on the Hugging Face Hub."""
    source, _, revision = args.hub.partition("@")
    gpus = int(args.gpu)
    return client.submit_hub(source, revision, args.task, args.name, gpus=gpus, **card)


def _submit_llm(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit a language model with its chat settings."""
    chat, base = _read_chat_settings(args), args.base or ""
    return client.submit_llm(args.llm, args.task, args.name, chat, base, **card)


def _submit_endpoint(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit the URL of a running model."""
    if not args.name:
        raise CommandError("Use --name to name the model.", USAGE)
    secret = _read_secret(args)
    return client.submit_endpoint(args.endpoint, args.task, args.name, args.adapter, secret, **card)


def _read_secret(args: argparse.Namespace) -> str:
    """Return the secret from the environment variable of --secret-env; "" without the option.

    Raises CommandError if the variable is not set.
    """
    # From a variable: an argument would be seen in the list of processes and in the shell's
    # history.
    secret = os.environ.get(args.secret_env) if args.secret_env else ""
    if secret is None:
        raise CommandError(f"The environment variable {args.secret_env} is not set.", USAGE)
    return secret


def _submit_chat(client: DynabenchClient, args: argparse.Namespace, card: NamedCard) -> str:
    """Submit a chat model on a server."""
    if not args.name:
        raise CommandError("Use --name to name the model.", USAGE)
    chat = _read_server_settings(args)
    return client.submit_chat(args.chat, args.task, args.name, chat, _read_secret(args), **card)


def _print_estimate(client: DynabenchClient, args: argparse.Namespace) -> int:
    """Print the expected cost of evaluating a chat model."""
    if not args.chat:
        raise CommandError("--estimate works only with --chat.", USAGE)
    estimate = client.estimate_chat(args.task, _read_server_settings(args))

    tokens = f"{estimate['tokens_in']:,} input tokens, {estimate['tokens_out']:,} output tokens"
    text = f"{estimate['requests']:,} calls, {tokens}"
    if estimate["cost"] is not None:
        text += f", about {estimate['cost']:.4f} in total"
    text += "."
    if estimate["over_cap"]:
        text += " This exceeds your limit."
    print_result(args, estimate, text)
    return 0


def _read_server_settings(args: argparse.Namespace) -> types.Chat:
    """Return the settings of a chat model on a server. Raises CommandError without --model."""
    if not args.model:
        raise CommandError("Use --model for the model's name on the server.", USAGE)
    return _read_chat_settings(args)


def _read_chat_settings(args: argparse.Namespace) -> types.Chat:
    """Return the chat settings that the command line gives."""
    settings = {
        name: getattr(args, name) for name in CHAT_OPTIONS if getattr(args, name) is not None
    }
    if args.prompt:
        settings["instructions"] = _read_text(args.prompt)
    if args.template:
        settings["template"] = _read_text(args.template)
    return cast(types.Chat, settings)


def _read_text(path: str) -> str:
    """Return the text of a file. Raises CommandError if the file cannot be read."""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read {path}: {error}", USAGE) from None


# Below the functions, as the tables name them.
CHAT_OPTIONS = (
    *("model", "shots", "shots_seed", "temperature", "seed", "max_tokens", "stop", "logprobs"),
    *("price_in", "price_out", "most_cost", "perturbed"),
)
"""The options whose names equal names of the API's chat settings."""
SUBMITTERS: dict[str, SubmitFunction] = {
    "folder": _submit_folder,
    "image": _submit_image,
    "predictions": _submit_predictions,
    "rows": _submit_rows,
    "hub": _submit_hub,
    "llm": _submit_llm,
    "endpoint": _submit_endpoint,
    "chat": _submit_chat,
}


def print_status(args: argparse.Namespace) -> int:
    """Print one model and its evaluations, or all your models."""
    client = open_client(args)
    if args.model:
        model, runs = client.model(str(args.model)), client.runs(str(args.model))
        print_result(args, {**model, "runs": runs}, _describe_model(model, runs))
        return 0
    models = client.models()
    rows = []
    for each in models:
        set_name = each.get("evaluation_set") or "all"
        rows.append([each["id"], each["task"], each["name"], set_name, each["sentence"]])
    text = format_table(["id", "task", "name", "set", "state"], rows)
    print_result(args, models, text if rows else "You haven't submitted a model yet.")
    return 0


def _describe_model(model: types.Model, runs: list[types.Run]) -> str:
    """Return the state of a model, and a table of its evaluations."""
    lines = [f"{model['name']} ({model['task']}): {model['sentence']}"]
    if model["error"]:
        lines.append(model["error"])
    if runs:
        rows = [[run["id"], _build_run_title(run), run["state"], run["error"]] for run in runs]
        lines.append(format_table(["run", "evaluation", "state", "error"], rows))
    return "\n".join(lines)


def _build_run_title(run: types.Run) -> str:
    """Return the set, its version and the suite of an evaluation."""
    return f"{run['evaluation_set']} v{run['version']}, {run['suite']}"


def print_logs(args: argparse.Namespace) -> int:
    """Print the log of one evaluation, or all logs, each below a line with its name."""
    client, model = open_client(args), str(args.model)
    if args.run:
        log = client.logs(model, str(args.run))
        print_result(args, {"log": log}, log.rstrip() or NO_LOG)
        return 0
    # The check runs first, so its log comes first.
    all_logs = [{"of": "check", "log": client.logs(model)}]
    for run in client.runs(model):
        title = f"{_build_run_title(run)}, run {run['id']}"
        all_logs.append({"of": title, "log": client.logs(model, run["id"])})
    log_texts = [f"== {each['of']} ==\n{each['log'].rstrip()}" for each in all_logs if each["log"]]
    print_result(args, all_logs, "\n".join(log_texts) or NO_LOG)
    return 0


def publish_model(args: argparse.Namespace) -> int:
    """Publish a model."""
    client = open_client(args)
    model = client.publish(str(args.model))
    print_result(args, model, f"{model['name']} is published: {client.server}/m/{model['id']}/")
    return 0


def unpublish_model(args: argparse.Namespace) -> int:
    """Hide a model from everybody but its owner and the task's owners."""
    model = open_client(args).unpublish(str(args.model))
    print_result(args, model, f"{model['name']} is no longer published.")
    return 0


def withdraw_model(args: argparse.Namespace) -> int:
    """Withdraw a model permanently after confirmation."""
    client, id = open_client(args), str(args.model)
    if not args.yes:
        print_note(
            f"Withdraw {client.model(id)['name']} permanently? This deletes its files, "
            "name and card. (y/n)"
        )
        # Without an answer, as in a script, nothing is withdrawn.
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError("Not withdrawn. Use --yes to skip this question.")
    model = client.withdraw(id)
    print_result(args, model, model["sentence"])
    return 0
