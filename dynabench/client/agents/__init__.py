"""An MCP server, with which coding agents use a Dynabench site through its REST API.

It needs the package `mcp` (`dynabench-client[mcp]`), which no other part of the client imports.
"""
