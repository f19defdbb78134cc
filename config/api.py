"""The native and the OpenAI-compatible API, assembled from the routers of all apps."""

from functools import cache

from gateway.api import anthropic, keys, openai, responses, session_list, sessions, usage, webhooks
from gateway.api.body_parser import BodyParser
from gateway.api.documented import DocumentedAPI
from gateway.api.errors import install_handlers, register_addresses
from gateway.authentication import KeyAuth, MemoryAuth, NativeAuth
from memories.api import artifacts, audit, memories, search, transfer
from memories.api.answers import ETAGS, IF_MATCH
from reviews.api import consolidations, ingest, reviews

api = DocumentedAPI(
    title="Daybook",
    version="1",
    description="Sessions, turns, memories and reviews of the key's or login's owner.",
    etags=ETAGS,
    if_match=IF_MATCH,
    servers=[{"url": "/", "description": "This Daybook."}],
    auth=NativeAuth(),
    parser=BodyParser(),
    urls_namespace="api",
    docs_url="/docs",
    openapi_url="/openapi.json",
)
for part in (session_list, sessions, keys, usage, audit):
    api.add_router("", part.router)
# `ingest` and `search` come first, since their paths also match that of a memory.
for part in (ingest, search, memories, transfer, artifacts, reviews, consolidations, webhooks):
    api.add_router("", part.router, auth=MemoryAuth())
v1 = DocumentedAPI(
    title="OpenAI-compatible API",
    version="1",
    description="Compatible with OpenAI's clients; `model` is the name of an agent.",
    auth=KeyAuth(),
    parser=BodyParser(),
    urls_namespace="v1",
    docs_url=None,
    openapi_url="/openapi.json",
)
for part in (openai, responses, anthropic):
    v1.add_router("", part.router)
install_handlers(api)
install_handlers(v1)
register_addresses("/v1/", cache(v1.addresses))
