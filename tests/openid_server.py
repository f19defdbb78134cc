"""An OpenID provider on loopback: real HTTP, real signatures, and options for every kind of wrong response."""

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from gateway.accounts.settings import OpenID

CLIENT_ID, CLIENT_SECRET = "daybook", "a secret of the provider"
ALICE: dict[str, Any] = {
    "sub": "subject-of-alice",
    "preferred_username": "alice.w",
    "email": "alice@example.org",
    "email_verified": True,
    "given_name": "Alice",
    "family_name": "Woods",
}


@cache
def _key(kid: str, *, of: str = "the provider") -> RSAKey:
    """Return a key; generating one takes longer than a test, so each is generated once."""
    return RSAKey.generate_key(2048, {"kid": kid})


def _write(stream: BinaryIO, content: bytes, pause: float) -> None:
    """Write an answer, with a pause before each byte, until the client gives up."""
    paused = threading.Event()  # never set
    size = 1 if pause else max(1, len(content))
    with suppress(ConnectionError):
        for start in range(0, len(content), size):
            paused.wait(pause)
            stream.write(content[start : start + size])


class OpenIDServer:
    """A provider. `person` signs in next. `claims` and `sign` change the claims of the ID token and its signature."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = dict(ALICE)
        self.userinfo: dict[str, Any] | None = None
        self.claims: dict[str, Any] = {}
        self.sign = "RS256"
        self.authorization_error = ""
        self.metadata_issuer = ""
        self.redirected_path = ""
        self.padding = 0  # spaces before each answer
        self.pause = self.head_pause = 0.0  # seconds before each byte of an answer's body, and of its head
        self.key, self.stranger = _key("one"), _key("one", of="a stranger")
        self.requested_paths: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def openid_settings(self, **changed: Any) -> OpenID:
        """Return the setting that configures this provider."""
        values: dict[str, Any] = {
            "issuer": self.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "name": "Example",
            "scopes": "openid email profile",
            "groups_claim": "groups",
            "roles": {},
        }
        return OpenID(**values | changed)

    def renew_key(self) -> None:
        """Sign with a new key from now on."""
        self.key = _key("two")

    def redirect_of(self, address: str) -> str:
        """Return the address to which the authorization endpoint redirects the browser."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        if self.authorization_error:
            return f"{query['redirect_uri']}?{urlencode({'error': self.authorization_error, 'state': query['state']})}"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        query = self._codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if (
            query is None
            or challenge.rstrip(b"=").decode() != query["code_challenge"]
            or form.get("redirect_uri") != query["redirect_uri"]
            or authorization != f"Basic {basic}"
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            **self.person,
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return 200, {
            "access_token": "of no use elsewhere",
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self._signed(claims),
        }

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": self.sign, "kid": self.key.kid}
        if self.sign == "none":
            parts = ({"alg": "none"}, claims)
            return (
                ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
                + "."
            )
        if self.sign == "HS256":  # signed with the public key, which everybody has
            return jwt.encode(header, claims, OctKey.import_key(self.key.as_pem(private=False)), algorithms=["HS256"])
        if self.sign == "stranger":
            return jwt.encode(header | {"alg": "RS256"}, claims, self.stranger)
        return jwt.encode(header, claims, self.key)

    def _handler(provider) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                provider.requested_paths.append(path)
                if path == "/.well-known/openid-configuration":
                    self.respond(200, provider._metadata())
                elif path == "/keys":
                    self.respond(200, {"keys": [provider.key.as_dict(private=False, use="sig", alg="RS256")]})
                elif path == "/userinfo" and self.headers["Authorization"] == "Bearer of no use elsewhere":
                    self.respond(200, provider.userinfo or {})
                elif path == "/authorize":
                    self.send_response(302)
                    self.send_header("Location", provider.redirect_of(self.path))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    self.respond(404, {})

            def do_POST(self) -> None:
                provider.requested_paths.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self.respond(*provider._token(form, self.headers.get("Authorization", "")))

            def respond(self, status: int, body: dict[str, Any]) -> None:
                content = b" " * provider.padding + json.dumps(body).encode()
                self.send_response(307 if urlsplit(self.path).path == provider.redirected_path else status)
                self.send_header("Location", f"http://localhost:{provider._server.server_port}/elsewhere")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                _write(self.wfile, content, provider.pause)

            def flush_headers(self) -> None:
                _write(self.wfile, b"".join(self._headers_buffer), provider.head_pause)
                self._headers_buffer = []

            def log_message(self, *args: object) -> None:
                """Log nothing."""

        return Handler

    def _metadata(self) -> dict[str, Any]:
        metadata = {
            "issuer": self.metadata_issuer or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return metadata | ({"userinfo_endpoint": f"{self.issuer}/userinfo"} if self.userinfo is not None else {})
