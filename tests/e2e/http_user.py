"""A person with a browser, without the browser: logs in, keeps cookies, sends CSRF tokens. For end-to-end tests."""

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
    """Requests of one person to one Daybook."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def log_in(self, name: str, password: str) -> None:
        """Through the login page's own form."""
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
        """The text of a page; an error status raises."""
        with self._opener.open(f"{self.address}{path}", timeout=_TIMEOUT) as response:
            return str(response.read().decode())

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A call of the native API with session cookie and CSRF token."""
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
        """The value of a cookie, "" if there is none."""
        return next((str(cookie.value) for cookie in self.jar if cookie.name == name), "")

    def cookies(self) -> str:
        """The Cookie header."""
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)


@dataclass(frozen=True, slots=True)
class KeyUser:
    """Calls of the native API with a key."""

    address: str
    key: str

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON; an error status raises."""
        request = urllib.request.Request(
            f"{self.address.rstrip('/')}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
