"""`/mcp`: the memory tools of the key's owner, for clients of the Model Context Protocol (streamable HTTP).
messages: JSON-RPC. protocol: versions, handshake, envelopes. tools: what is offered and done. api: the HTTP edge.
Every request stands alone: nothing is kept between two of them, in any process (docs/decisions/0010-mcp.md)."""
