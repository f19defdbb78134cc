"""OAuth 2.1 for `/mcp`, so that a hosted app is added by the address alone. Built on django-oauth-toolkit.

addresses: where the parts are, and the challenge of a 401. metadata: the documents of `/.well-known/`. registration:
`/oauth/register`. consent: `/oauth/authorize`. endpoints: `/oauth/token` and `/oauth/revoke`. validator: what the
library is told beyond its settings. tokens: how tokens look, and scopes. connections: the connected apps, which are
rows of ApiKey (docs/decisions/0038-connected-apps.md)."""
