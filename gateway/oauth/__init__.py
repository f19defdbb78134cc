"""OAuth 2.1 for `/mcp`, so that a person connects a hosted app with nothing but the address. Uses django-oauth-toolkit.

addresses: public URLs, and the challenge of a 401. registration: `/oauth/register`. consent: `/oauth/authorize`.
endpoints: `/oauth/token`, `/oauth/revoke` and the documents at `/.well-known/`. validator: rules beyond the library's
settings. tokens: token formats and scopes. connections: connected apps, which are rows of ApiKey
(docs/decisions/0038-connected-apps.md)."""
