"""Create the endpoint that calls a target, from the target's row."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import Error as DatabaseException
from django.db import connection
from django.db.models import QuerySet

from core.data.encryption import UnreadableSecret, decrypt, derive_keys
from serving.errors import ModelListUnavailableError, get_first_line
from serving.proofs import Prover
from serving.spec import PACKAGE_PREFIX, ModelSpec
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.models import Generator, TargetModel, TargetVersion
from tasks.targets.endpoints.base import (
    CHAT,
    GENERATOR_KIND,
    QA_KIND,
    Endpoint,
    EndpointConfig,
    EndpointError,
    build_misconfigured_error,
)
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint
from tasks.targets.endpoints.registry import build_endpoint
from tasks.targets.endpoints.transport import Transport, get_origin, parse_url
from tasks.targets.services import note_version

INFO_SECONDS = 3.0
SERVER_KEY_PURPOSE = "model-server"
"""The purpose of the key that proves to our model server who is calling."""
CHAT_OPTIONS = ("model", "max_tokens", "seed", "structured")
"""Options of a chat target that also apply with other prompts."""
_build_cached_endpoint = lru_cache(maxsize=256)(build_endpoint)
CONVERSING_ADAPTERS = ("http", "openai_chat", "scripted")
"""Adapters that can send a conversation."""


def get_endpoint(target: TargetModel) -> Endpoint:
    """Return the target's endpoint. Equal settings share one object and its connections.

    Raises EndpointError with the reason `misconfigured`.
    """
    config = target.task.config
    answer = config.get_component(config.answer_field)
    is_span, is_arena = answer.type == "span", config.kind == "arena"
    # Other adapters send named fields and no list of messages.
    if is_arena and target.adapter not in CONVERSING_ADAPTERS:
        names = ", ".join(CONVERSING_ADAPTERS)
        raise build_misconfigured_error(
            f"{target.adapter} sends no conversation; use one of: {names}."
        )
    model_options = _get_served_model_options(target)
    endpoint_config = EndpointConfig(
        url=target.base_url,
        fields=config.model_fields,
        output=answer.name,
        labels=answer.values or None,
        answer=answer,
        media=config.media_fields,
        kind=QA_KIND if is_span else CHAT if is_arena else "remote",
        secret=get_secret(target),
        options={
            **model_options,
            **target.options,
            **({"passage_field": answer.reference} if is_span else {}),
        },
        **_get_access_settings(target, target.base_url),
    )
    return _build_cached_endpoint(target.adapter, endpoint_config)


def build_messages(turns: Iterable[tuple[str, str]], prompt: str) -> list[dict[str, str]]:
    """Return a conversation as chat messages: the earlier turns, then the prompt.

    turns: pairs of a question and its answer.
    """
    roles = ("user", "assistant")
    messages = []
    for turn in turns:
        for role, text in zip(roles, turn, strict=True):
            messages.append({"role": role, "content": text})
    messages.append({"role": "user", "content": prompt})
    return messages


def build_chooser_endpoint(
    target: TargetModel,
    fields: tuple[str, ...],
    *,
    output: str,
    labels: tuple[str, ...],
    prompt: str,
    transport: Transport | None = None,
    media: Mapping[str, str] = MappingProxyType({}),
    own_options: Mapping[str, Any] = MappingProxyType({}),
) -> Endpoint:
    """Return an endpoint that uses a target's chat model to choose a label, with another prompt.

    transport: carries the calls, without the target's secret. media: as in `EndpointConfig`.
    own_options: replace the target's. Raises EndpointError with the reason `misconfigured`.
    """
    return _build_endpoint(
        target,
        fields,
        prompt,
        transport,
        own_options,
        output=output,
        labels=labels,
        media=media,
    )


def build_writer_endpoint(
    target: TargetModel,
    *,
    read_field: str,
    output: str,
    prompt: str,
    transport: Transport | None = None,
) -> Endpoint:
    """Return an endpoint that uses a target's chat model to write a text, with another prompt.

    transport: carries the calls, without the target's secret. Raises EndpointError with the reason
    `misconfigured`.
    """
    answer = Component(name=output, type="long_text")
    return _build_endpoint(target, (read_field,), prompt, transport, output=output, answer=answer)


def build_prompted_endpoint(
    target: TargetModel, fields: tuple[str, ...], *, output: str, prompt: str, seed: int
) -> Endpoint:
    """Return an endpoint that uses a target's chat model to write varied texts, by another prompt.

    fields: what it reads. seed: replaces the target's own. Raises EndpointError with the reason
    `misconfigured`.
    """
    options = {"temperature": 1, "seed": seed}
    return _build_endpoint(
        target, fields, prompt, None, output=output, kind=GENERATOR_KIND, own_options=options
    )


def _build_endpoint(
    target: TargetModel,
    fields: tuple[str, ...],
    prompt: str,
    transport: Transport | None,
    own_options: Mapping[str, Any] = MappingProxyType({}),
    **answer: Any,
) -> Endpoint:
    """Return an endpoint of a target's chat model. own_options: replace the target's."""
    model_options = _get_served_model_options(target)
    options = {}
    for name in CHAT_OPTIONS:
        if name in target.options:
            options[name] = target.options[name]
    endpoint_config = EndpointConfig(
        url=target.base_url,
        fields=fields,
        secret=None if transport else get_secret(target),
        # Its own prompt and format do not come along, and the same text gets the same answer.
        options={
            **model_options,
            **options,
            "instructions": prompt,
            "temperature": 0,
            **own_options,
        },
        **_get_access_settings(target, target.base_url),
        **answer,
    )
    if transport:
        # Without the cache, since the transport belongs to this one call.
        return OpenAIChatEndpoint(endpoint_config, transport)
    return _build_cached_endpoint(target.adapter, endpoint_config)


def list_generator_fields(config: TaskConfig) -> tuple[str, ...]:
    """Return the fields that a generator reads in addition to `goal`: all texts of the context."""
    names = []
    for component in config.context:
        if component.kind.is_text:
            names.append(component.name)
    return tuple(names)


def get_generator_endpoint(generator: Generator) -> Endpoint:
    """Return the generator's endpoint. Equal settings share one object.

    It reads the texts of the context and `goal`, the goal as a sentence. Raises EndpointError with
    the reason `misconfigured`.
    """
    config = generator.task.config
    endpoint_config = EndpointConfig(
        url=generator.url,
        fields=(*list_generator_fields(config), "goal"),
        output=config.text_field,
        kind=GENERATOR_KIND,
        secret=get_secret(generator),
        options={**generator.options},
        **_get_access_settings(generator, generator.url),
    )
    return _build_cached_endpoint(generator.adapter, endpoint_config)


def get_secret(target: TargetModel | Generator) -> str | None:
    """Return the bearer token, from the environment or as its editors entered it, or None.

    Raises EndpointError with the reason `misconfigured`.
    """
    if target.secret_env:
        return os.environ.get(target.secret_env)
    try:
        return decrypt(target.sealed_secret) or None
    except UnreadableSecret:
        raise build_misconfigured_error(
            "Its secret can no longer be read. Enter it again."
        ) from None


def _get_access_settings(row: TargetModel | Generator, url: str) -> dict[str, Any]:
    """Return the allowed private hosts and, for our model server, the proof of who is calling.

    The proof names the task, so that a URL that an owner enters reaches only the task's targets.
    Raises EndpointError with the reason `misconfigured`.
    """
    hosts = tuple(settings.TARGET_PRIVATE_HOSTS)
    server_origin = get_origin(parse_url(settings.MODEL_SERVER_URL))
    # Only our own model server gets the proof. Elsewhere it would be handed to a stranger.
    if get_origin(parse_url(url)) != server_origin:
        return {"allow_private_hosts": hosts}
    prover = Prover(derive_keys(SERVER_KEY_PURPOSE)[0], row.task_id or 0)  # 0: it is not stored
    return {"allow_private_hosts": (*hosts, server_origin[1]), "prover": prover}


def get_version_id(target: TargetModel, fingerprint: Mapping[str, Any]) -> int:
    """Return the id of the TargetVersion that answered, cached for an hour.

    Call it outside transactions: an unknown digest costs one call to the target.
    """
    # A server reports any text as its digest, and a cache's key must be short and plain.
    digest = hashlib.sha256(str(fingerprint.get("digest")).encode()).hexdigest()
    key = f"version:{target.pk}:{digest}"
    return int(
        cache.get_or_set(key, lambda: _get_or_create_version(target, fingerprint).pk, 3600) or 0
    )


def _get_or_create_version(target: TargetModel, fingerprint: Mapping[str, Any]) -> TargetVersion:
    """Return the row of the version that answered. A new row stores all that the target reports."""
    version = target.versions.filter(digest=str(fingerprint.get("digest"))).first()
    if version:
        return version
    try:
        full_fingerprint = get_endpoint(target).info(deadline_seconds=INFO_SECONDS).fingerprint
    except EndpointError:
        full_fingerprint = fingerprint
    # The server may have got another model between the answer and this question.
    is_same_model = full_fingerprint.get("digest") == fingerprint.get("digest")
    return note_version(
        target, {**full_fingerprint, **fingerprint} if is_same_model else fingerprint
    )


def build_spec(target: TargetModel) -> ModelSpec:
    """Return the spec with which our model server loads a target without a URL."""
    serving_options: dict[str, Any] = {}
    for name, value in target.serving.items():
        if isinstance(value, list):
            value = tuple(value)  # as a frozen spec needs it
        serving_options[name] = value
    is_allowed = target.source == target.allowed_folder
    return ModelSpec(
        name=target.name,
        source=target.source,
        revision=target.revision or None,
        # A folder elsewhere must be one that an administrator has allowed.
        below=None if is_allowed else str(settings.MODELS_HOME),
        task=target.task_id,
        **serving_options,
    )


def build_serving_settings(
    config: TaskConfig, *, backend: str = "onnx", precision: str = "fp32"
) -> dict[str, Any]:
    """Return the settings with which our model server loads a task's model.

    Further settings are in the model's folder.
    """
    return {
        "backend": backend,
        "precision": precision,
        "fields": list(config.ordered_fields),
        "output": config.answer_field,
    }


def _get_served_model_options(target: TargetModel) -> dict[str, str]:
    """Return the model's name as an option, if our model server runs it as a language model.

    Raises EndpointError with the reason `misconfigured`.
    """
    is_chat = target.adapter == "openai_chat"
    if target.source.startswith(PACKAGE_PREFIX) and not is_chat:
        raise build_misconfigured_error(
            f"{target.source} is a language model: the adapter is openai_chat."
        )
    if is_chat and not target.url:
        return {"model": target.name}
    return {}


@contextmanager
def _open_registered_targets() -> Iterator[QuerySet[TargetModel]]:
    """Yield the targets that our model server serves; close the database connection afterwards.

    Raises ModelListUnavailableError if the database is unavailable or has no tables yet, as before
    `setup`.
    """
    try:
        yield TargetModel.objects.filter(url="").exclude(source="")
    except DatabaseException as error:
        raise ModelListUnavailableError(
            f"The site's models cannot be read: {get_first_line(error)}"
        ) from None
    finally:
        # The model server's threads live long, and each would keep a connection open.
        if not connection.in_atomic_block:
            connection.close()


def find_registered_spec(name: str) -> ModelSpec | None:
    """Return the spec of the registered target with this name, or None.

    Raises ModelListUnavailableError.

    name: `TASK/NAME` for the target of the task with this id; a name alone for the oldest target
    with that name.
    """
    task, _, target_name = name.rpartition("/")
    with _open_registered_targets() as targets:
        matching_targets = targets.filter(name=target_name).order_by("pk")
        target = (
            matching_targets.filter(task=int(task)) if task.isdecimal() else matching_targets
        ).first()
        if target:
            return build_spec(target)
        return None


def list_registered_names() -> list[str]:
    """Return the names of all targets that our model server serves.

    Raises ModelListUnavailableError.

    If several tasks have a target of the same name, all but the oldest are listed as `TASK/NAME`.
    """
    with _open_registered_targets() as targets:
        seen_names: set[str] = set()
        names = []
        for name, task in targets.order_by("pk").values_list("name", "task"):
            # The oldest one keeps the short name, as `find_registered_spec` finds it.
            names.append(f"{task}/{name}" if name in seen_names else name)
            seen_names.add(name)
        return names
