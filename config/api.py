"""The assembled APIs: every app's routers, one error handler."""

from functools import cache

from gateway.api import anthropic, keys, openai, openai_plain, responses, sessions
from gateway.api.body_parser import BodyParser
from gateway.api.documented import DocumentedAPI
from gateway.api.errors import install_handlers, name_addresses
from gateway.authentication import KeyAuth, MemoryAuth, NativeAuth
from memories.api import artifacts, audit, memories, transfer
from reviews.api import consolidations, ingest, reviews

api = DocumentedAPI(
    title="Daybook",
    version="1",
    description="Sessions, turns, memories and reviews of the key's or login's owner.",
    auth=NativeAuth(),
    parser=BodyParser(),
    urls_namespace="api",
    docs_url="/docs",
    openapi_url="/openapi.json",
)
api.add_router("", sessions.router)
api.add_router("", keys.router)
api.add_router("", audit.router)
# `ingest` first: its address looks like that of a memory.
for part in (ingest, memories, transfer, artifacts, reviews, consolidations):
    api.add_router("", part.router, auth=MemoryAuth())
v1 = DocumentedAPI(
    title="OpenAI-compatible API",
    version="1",
    description="What OpenAI's clients speak; `model` is the name of an agent.",
    auth=KeyAuth(),
    urls_namespace="v1",
    docs_url=None,
    openapi_url="/openapi.json",
)
for door in (openai, openai_plain, responses, anthropic):
    v1.add_router("", door.router)
install_handlers(api)
install_handlers(v1)
name_addresses("/v1/", cache(v1.addresses))
