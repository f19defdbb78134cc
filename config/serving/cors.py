"""The headers that pages of other origins may send to the APIs, and may read in responses."""

from gateway.limits.rate_headers import ANTHROPIC_HEADERS, OPENAI_HEADERS

_REQUEST = """
    accept anthropic-beta anthropic-dangerous-direct-browser-access anthropic-version api-key authorization content-type
    idempotency-key if-match last-event-id mcp-method mcp-name mcp-protocol-version mcp-session-id openai-beta
    openai-organization openai-project traceparent tracestate user-agent x-api-key x-daybook-book x-daybook-session
    x-daybook-user x-request-id
"""
# The SDKs of OpenAI and Anthropic add these to every request.
_STAINLESS = "arch helper-method lang os package-version poll-helper retry-count runtime runtime-version timeout"
_ANSWER = """
    etag mcp-session-id request-id retry-after www-authenticate x-daybook-run x-daybook-session x-request-id
    x-should-retry
"""

CORS_REQUEST_HEADERS = (*_REQUEST.split(), *(f"x-stainless-{name}" for name in _STAINLESS.split()))
CORS_ANSWER_HEADERS = (*ANTHROPIC_HEADERS, *OPENAI_HEADERS, *_ANSWER.split())
