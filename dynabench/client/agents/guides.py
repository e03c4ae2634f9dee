"""The resources of the MCP server: guides for people that agents read, and the schema."""

import json
from pathlib import Path

from mcp.server.mcpserver.exceptions import ResourceError
from mcp.server.mcpserver.resources import FunctionResource

from dynabench.client.agents.access import Access
from dynabench.client.commands.test import find_server_modules
from dynabench.client.errors import DynabenchError

GUIDES = (
    ("task-config", "The configuration of a task", "Every key, with the smallest task first."),
    ("glossary", "Glossary", "The words that pages, API and code share."),
    ("how-to-open-a-round", "Open your first round", "From an idea to people who write examples."),
)
"""(name, title, description) of each page in docs/ that is a resource."""


def build_guides(access: Access) -> list[FunctionResource]:
    """Return the resources."""
    resources = [
        FunctionResource(
            uri=f"dynabench://guide/{name}",
            name=name,
            title=title,
            description=description,
            mime_type="text/markdown",
            # Bound now: the loop changes the variable.
            fn=lambda name=name: _read_guide(name),
        )
        for name, title, description in GUIDES
    ]

    async def read_schema() -> str:
        """Return the JSON Schema of configurations, as the site has it."""
        try:
            # Public, and the same for everyone.
            async with access.open_client({}) as client:
                return json.dumps(await client.config_schema(), ensure_ascii=False, indent=1)
        except DynabenchError as error:
            raise ResourceError(str(error)) from None

    schema = FunctionResource(
        uri="dynabench://schema/task-config",
        name="task-config-schema",
        title="JSON Schema of configurations",
        description="Of this site's version. `check_configuration` checks more than the schema.",
        mime_type="application/schema+json",
        fn=read_schema,
    )
    # Guides are pages of the client's version, the schema is of the site's.
    return [*resources, schema]


def _read_guide(name: str) -> str:
    """Return the text of a page in docs/, from the wheel or the checkout. Raises ResourceError."""
    path = Path(find_server_modules(), "docs", f"{name}.md")
    try:
        # At each request, so that a checkout shows what is there.
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ResourceError(
            "This copy of the client has no guides. Install it from a site or a checkout."
        ) from None
