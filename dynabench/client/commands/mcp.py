"""`dynabench mcp`: a server with which coding agents use the site."""

import argparse
import re
from pathlib import Path
from typing import Any

from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    add_command,
    find_server,
    print_note,
)
from dynabench.client.credentials import find_api_key

HOST_NAME = re.compile(r"[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?")
INSTALL_HINT = 'This command needs more packages: pip install "dynabench-client[mcp]"'


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "mcp", serve, "serve coding agents over MCP, with the scopes of your token"
    )
    parser.add_argument(
        "--http",
        type=_parse_port,
        metavar="PORT",
        help="serve over streamable HTTP instead of stdio; each request brings its own token",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address for --http; default: 127.0.0.1, this machine"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        type=_parse_host_name,
        default=[],
        metavar="NAME",
        help="another host name that clients may use, such as that of a proxy; repeatable",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="let tools read files in this folder; default: none",
    )


def _parse_port(text: str) -> int:
    """Parse a port; 0 is any free one. Raises ArgumentTypeError."""
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a port. Use a number from 0 to 65535")


def _parse_host_name(text: str) -> str:
    """Parse a host name without protocol and port. Raises ArgumentTypeError."""
    # Others, such as a URL or *, would be compared with the header as they are and never match.
    if HOST_NAME.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text} is not a host name. Use one like mcp.example.org")


def serve(args: argparse.Namespace) -> int:
    """Serve until the client closes standard input, or until Ctrl-C."""
    server_url = find_server(args)
    if args.folder and not args.folder.is_dir():
        raise CommandError(f"{args.folder} is not a folder.", USAGE)
    # The check of arguments comes first, and packages that are not installed stop no other command.
    try:
        from dynabench.client.agents.access import Access
        from dynabench.client.agents.server import serve_stdio
    except ImportError as error:
        raise CommandError(f"{INSTALL_HINT} ({error})", USAGE) from None
    if args.http is None:
        serve_stdio(Access(server_url, key=find_api_key(server_url), folder=args.folder))
        return 0
    return _serve_http(args, Access(server_url, is_shared=True, folder=args.folder))


def _serve_http(args: argparse.Namespace, access: Any) -> int:
    """Serve over streamable HTTP. Raises CommandError for a combination that is not safe."""
    from dynabench.client.agents.server import PATH, is_loopback, open_listener, serve_http

    # Others can send requests here, so nothing of this machine is offered.
    if not is_loopback(args.host):
        if access.folder:
            message = "--folder would let others read your files. Use it without --host."
            raise CommandError(message, USAGE)
        if not args.allow_host:
            message = "Use --allow-host to name the host under which clients reach this server."
            raise CommandError(message, USAGE)
        print_note("Tokens cross the network: put a proxy with TLS in front of this server.")
    with open_listener(args.host, args.http) as listener:
        # The port may have been 0.
        host, port = listener.getsockname()[:2]
        shown_host = f"[{host}]" if ":" in host else host
        print_note(
            f"Serving {access.server} at http://{shown_host}:{port}{PATH}. Stop with Ctrl-C."
        )
        serve_http(access, listener, args.allow_host)
    return 0
