"""How functions become tools: a schema, hints, a client for each call, and errors as results."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from dynabench.client.agents.access import Access
from dynabench.client.agents.answers import Answer, build_failure, build_result, describe_error
from dynabench.client.errors import DynabenchError

Scope = Literal["read", "submit", "own"]
Kind = Literal["look", "check", "add", "change"]
"""What a tool does: it reads; it checks and stores nothing; it adds; it changes what is there."""
ToolFunction = Callable[..., Awaitable[dict[str, Any]]]
PASSED = ("client", "access", "context")
"""The arguments that functions get from here, and not from the agent."""


@dataclass
class Toolbox:
    """The tools of a server."""

    access: Access
    tools: list[Tool] = field(default_factory=list)

    def add(
        self,
        function: ToolFunction,
        answer: type[Answer],
        *,
        kind: Kind = "look",
        scope: Scope = "read",
        untrusted: Sequence[str] = (),
        whole: Sequence[str] = (),
        is_idempotent: bool = False,
    ) -> None:
        """Add a tool that calls a function.

        function: its name and docstring become the tool's. It gets what it names of PASSED.
        answer: the schema of its result. scope: what the token needs. untrusted, whole: see
        `build_result`. is_idempotent: whether a second call changes nothing more.
        """
        tool = Tool.from_function(
            self._wrap(function, answer, scope, untrusted, whole),
            name=function.__name__,
            title=function.__name__.replace("_", " ").capitalize(),
            description=f"{inspect.getdoc(function)}\n\nScope of the token: {scope}.",
            annotations=_build_hints(kind, is_idempotent=is_idempotent),
            # For programs; the description says it to models.
            meta={"dynabench/scope": scope},
        )
        # A misspelt argument must not be taken for one that was left out.
        model = tool.fn_metadata.arg_model
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)
        tool.parameters = model.model_json_schema(by_alias=True)
        self.tools.append(tool)

    def _wrap(
        self,
        function: ToolFunction,
        answer: type[Answer],
        scope: Scope,
        untrusted: Sequence[str],
        whole: Sequence[str],
    ) -> Callable[..., Awaitable[CallToolResult]]:
        """Return a function that takes the tool's arguments and the context of the request."""

        async def call(mcp_context: Context, **arguments: Any) -> CallToolResult:
            try:
                async with self.access.open_client(mcp_context.headers) as client:
                    passed = {"client": client, "access": self.access, "context": mcp_context}
                    # Functions name only what they use.
                    given = {name: passed[name] for name in PASSED if name in signature.parameters}
                    data = await function(**given, **arguments)
            # Any other error is a fault of this program, which the server reports without its text.
            except (DynabenchError, OSError, ValueError) as error:
                return describe_error(error, scope)
            return build_result(data, untrusted, whole)

        signature = inspect.signature(function, eval_str=True)
        parameters = [
            # The server passes all arguments by name.
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, each in signature.parameters.items()
            if name not in PASSED
        ]
        context = inspect.Parameter(
            "mcp_context", inspect.Parameter.KEYWORD_ONLY, annotation=Context
        )
        # The server derives the schemas from these two.
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*parameters, context], return_annotation=Annotated[CallToolResult, answer]
        )
        # By its annotation the server finds the argument for the context.
        call.__annotations__ = {"mcp_context": Context, "return": CallToolResult}
        return call


def _build_hints(kind: Kind, *, is_idempotent: bool) -> ToolAnnotations:
    """Return what tells a client's person how careful to be with a tool."""
    is_read_only = kind in ("look", "check")
    return ToolAnnotations(
        read_only_hint=is_read_only,
        # Also what can be undone: a person should see that something changes.
        destructive_hint=kind == "change",
        idempotent_hint=is_read_only or is_idempotent,
        # Only this site, not the Internet.
        open_world_hint=False,
    )


class AgentServer(MCPServer):
    """An MCP server that returns wrong arguments and unknown tools as errors of the API's form."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool with these arguments."""
        # Otherwise the answer would be a sentence without a code.
        known_names = [tool.name for tool in await self.list_tools()]
        if name not in known_names:
            return build_failure(
                "unknown_tool", "There is no tool of this name.", tools=known_names
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _describe_arguments(error.__cause__)
            raise


def _describe_arguments(error: ValidationError) -> CallToolResult:
    """Return the result for wrong arguments, without their values."""
    # The values are left out: they can be long, and the agent knows them.
    fields: dict[str, list[str]] = {}
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        fields.setdefault(".".join(map(str, each["loc"])), []).append(each["msg"])
    return build_failure("arguments", "The arguments do not match the tool's schema.", fields)
