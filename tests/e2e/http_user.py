"""HTTP clients for end-to-end tests: a person's browser session, with cookies and CSRF tokens, or an API key."""

import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

_TIMEOUT = 30


class HttpUser:
    """A person's browser session with a Daybook."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def log_in(self, name: str, password: str) -> None:
        """Log in through the login page's form."""
        page = self.page("/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, "the login form has no CSRF token"
        form = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        request = urllib.request.Request(
            f"{self.address}/login/", data=urllib.parse.urlencode(form).encode(), headers={"Referer": self.address}
        )
        with self._opener.open(request, timeout=_TIMEOUT) as response:
            assert response.url.rstrip("/") == self.address, f"login led to {response.url}"

    def page(self, path: str) -> str:
        """Return the text of a page; raise for an error status."""
        with self._opener.open(f"{self.address}{path}", timeout=_TIMEOUT) as response:
            return str(response.read().decode())

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Call the native API with the session cookie and the CSRF token."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-CSRFToken": self.cookie("daybook_csrf")},
        )
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def cookie(self, name: str) -> str:
        """Return the value of a cookie, or "" if there is none."""
        return next((str(cookie.value) for cookie in self.jar if cookie.name == name), "")

    def cookies(self) -> str:
        """Return the Cookie header."""
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)


@dataclass(frozen=True, slots=True)
class KeyUser:
    """Calls the native API with an API key."""

    address: str
    key: str

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON; raise for an error status."""
        request = urllib.request.Request(
            f"{self.address.rstrip('/')}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
