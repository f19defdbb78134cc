"""Middleware. Under ASGI each of Django's middlewares costs a thread switch per request, so API requests skip them and
use only RequestBoundary."""

import codecs
import logging
import sys
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseBase,
    HttpResponseForbidden,
    HttpResponseNotFound,
)
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.gzip import GZipMiddleware
from django.middleware.security import SecurityMiddleware
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html

from config.serving.assets import AssetMiddleware
from gateway.api.anthropic_errors import is_anthropic
from gateway.api.errors import error_of_status, error_response
from gateway.errors import GONE
from gateway.limits.rate_headers import rate_headers, windows
from gateway.requests import (
    client_address,
    content_policy,
    is_api,
    request_id,
    request_id_of,
    trace_context,
    trace_context_of,
)
from memories.audit.log import Origin, origin
from memories.database.access import overloaded, vanished
from memories.errors import DomainError, Forbidden, InvalidRequest, NotFound, Overloaded

logger = logging.getLogger("daybook.pages")
GetResponse = Callable[[HttpRequest], Any]

_STRICT = content_policy()
_INLINE = {"style_src": "'self' 'unsafe-inline'", "font_src": "'self' data:", "manifest_src": "'none'"}
# The admin theme uses Alpine's eval build and inline styles.
_ADMIN = content_policy(script_src="'self' 'unsafe-eval'", **_INLINE)
# The API docs page (Swagger) has inline styles; its scripts are served by Daybook.
_DOCS = content_policy(form_action="'none'", **_INLINE)

_FAILED_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{0} · Daybook</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><link rel="stylesheet" href="{2}"></head>'
    '<body><main class="page"><div class="page__head"><h1>{0}</h1></div>'
    '<p class="indent">{1} <a href="/">Go to Daybook</a></p></main></body></html>'
)
_FAILED = "The server’s log has details. Go back and try again."
_UNREADABLE = "This request cannot be read: send forms in UTF-8, to the address of this Daybook, with fewer fields."
_MULTIPART = "multipart/form-data"
HOST_REFUSED = "This host name is not in DAYBOOK_ALLOWED_HOSTS."
_CSRF_FAILED = (
    "This form is older than your sign-in, or your browser sent no cookie with it. Go back, reload the page and try "
    "again. A Daybook whose address is https accepts no forms over http."
)


def _policy(path: str) -> str:
    """Return the content security policy of a page, or "" for API responses other than the docs."""
    if is_api(path):
        return _DOCS if path == "/api/docs" else ""
    return _ADMIN if path.startswith("/admin/") else _STRICT


def _as_json(response: HttpResponseBase, request: HttpRequest) -> HttpResponseBase:
    """Return an error page or text of Django or ninja as JSON of the APIs, with its headers (such as those of CORS)."""
    kind = response.headers.get("Content-Type", "")
    if response.status_code < 400 or kind.startswith("application/json"):
        return response
    path = request.path_info
    answer = error_response(error_of_status(response.status_code, path), path, request.headers)
    for name, value in response.headers.items():
        if not name.lower().startswith("content-"):
            answer.headers.setdefault(name, value)
    return answer


def _unreadable(request: HttpRequest) -> HttpResponse | None:
    """Return the response to a URL with a NUL character, which no database can store, or to a form with files that is
    not in UTF-8: Django decodes it with any codec of Python, of which punycode takes quadratic time. None for other
    requests."""
    if "\x00" in request.path_info:
        return HttpResponseNotFound()
    if "%00" in request.META.get("QUERY_STRING", ""):
        return HttpResponseBadRequest()
    if request.encoding and request.content_type == _MULTIPART and codecs.lookup(request.encoding).name != "utf-8":
        return refused_page(InvalidRequest(_UNREADABLE))
    return None


def asks_for_headers(request: HttpRequest) -> bool:
    """Return True for a HEAD request, which an API answers as it would answer a GET."""
    return bool(request.META["REQUEST_METHOD"] == "HEAD")


def _remove_body(response: HttpResponseBase) -> None:
    """Remove the body of the answer to a HEAD request; that of a stream is not read when it is sent."""
    if isinstance(response, HttpResponse):
        response.headers["Content-Length"] = str(len(response.content))
        response.content = b""


def page_failed(request: HttpRequest) -> HttpResponse:
    """Django's handler500: a plain page, with 503 if the database is busy or full, or too many people sign in, and 404
    if a row was deleted after it was looked up. It uses neither the session nor the database nor templates that
    would."""
    error = sys.exc_info()[1]
    if error and vanished(error):
        logger.warning("a page failed: what it needs was deleted in the meantime", exc_info=error)
        return refused_page(NotFound(GONE))
    busy = error if isinstance(error, Overloaded) else overloaded(error) if error else None
    if busy is None:
        return _failed_page("Something went wrong", _FAILED, 500)
    logger.warning("a page was refused: %s", busy)
    page = refused_page(busy)
    page._has_been_logged = True  # type: ignore[attr-defined]  # Django would add the traceback of each refusal
    return page


def page_unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: a plain page. Django's default reads the CSRF token from the form, which may be invalid."""
    return refused_page(InvalidRequest(HOST_REFUSED if isinstance(exception, DisallowedHost) else _UNREADABLE))


def page_missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404: a page with a link back. For API requests RequestBoundary replaces it with JSON."""
    if is_api(request.path_info) or request.path_info.startswith(settings.STATIC_URL):
        return HttpResponseNotFound()
    page = render(request, "gateway/not_found.html", status=404)
    add_never_cache_headers(page)  # its frame names the person
    return page


def page_not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403: a page with a link back. For API requests RequestBoundary replaces it with JSON."""
    if is_api(request.path_info):
        return HttpResponseForbidden()
    page = render(request, "gateway/not_for_you.html", {"what": "this page"}, status=403)
    add_never_cache_headers(page)
    return page


def page_csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW: a page that explains why the form was refused."""
    return refused_page(Forbidden(_CSRF_FAILED))


def refused_page(error: DomainError) -> HttpResponse:
    """Return a plain page that says why a request was refused."""
    heading = "Daybook is busy" if error.http_status == HTTPStatus.SERVICE_UNAVAILABLE else "This was not accepted"
    response = _failed_page(heading, str(error), error.http_status)
    response.headers["Content-Security-Policy"] = _STRICT
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"
    if wait := error.details.get("retry_after"):
        response.headers["Retry-After"] = str(wait)
    return response


def _failed_page(heading: str, words: str, status: int) -> HttpResponse:
    return HttpResponse(format_html(_FAILED_PAGE, heading, words, static("gateway/daybook.css")), status=status)


class RequestBoundary:
    """The outermost middleware: sets the request's id and the headers of every response."""

    async_capable = True
    sync_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.is_async:
            return self._call_async(request)
        self.enter(request)
        return self.leave(request, _unreadable(request) or self.get_response(request))

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        self.enter(request)
        return self.leave(request, _unreadable(request) or await self.get_response(request))

    @staticmethod
    def enter(request: HttpRequest) -> None:
        request_id.set(request_id_of(request.headers.get("x-request-id", "")))
        headers = request.headers
        trace_context.set(trace_context_of(headers.get("traceparent", ""), headers.get("tracestate", "")))
        windows.set({})
        origin.set(Origin(client_address(request) or "", request_id.get()))
        if not is_api(request.path_info):
            return
        if request.path_info.endswith("/"):
            request.path_info = request.path_info.rstrip("/")  # API URLs work with and without a trailing slash
        if request.method == "HEAD":
            request.method = "GET"

    @staticmethod
    def leave(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        api = is_api(request.path_info)
        if api:
            response = _as_json(response, request)
        headers = response.headers
        headers["x-request-id"] = request_id.get()
        headers["X-Content-Type-Options"] = "nosniff"
        if api:
            anthropic = is_anthropic(request.path_info, request.headers)
            if anthropic:
                headers["request-id"] = request_id.get()
            headers.setdefault("Cache-Control", "no-store")
            for name, value in rate_headers(anthropic=anthropic):
                headers[name] = value
        if api and asks_for_headers(request):
            _remove_body(response)
        if policy := _policy(request.path_info):
            headers.setdefault("Content-Security-Policy", policy)
            headers.setdefault("X-Frame-Options", "DENY")
        return response


def _for_pages(base: type) -> type:
    """Return a subclass of a middleware that API requests skip. Its `process_view` becomes a coroutine, since Django
    would otherwise use a thread for it on every request."""

    class ForPages(base):  # type: ignore[misc]  # a dynamic base
        def __call__(self, request: HttpRequest) -> Any:
            return self.get_response(request) if is_api(request.path_info) else super().__call__(request)

        if hasattr(base, "process_view"):

            async def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
                return None if is_api(request.path_info) else super().process_view(request, *view)

    ForPages.__name__ = ForPages.__qualname__ = f"Page{base.__name__}"
    return ForPages


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages. Other responses are already compressed (static files, pictures) or are downloads."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)


PageSecurity = _for_pages(SecurityMiddleware)
PageStatic = _for_pages(AssetMiddleware)
PageCompression = _for_pages(CompressionMiddleware)
PageSessions = _for_pages(SessionMiddleware)
PageCommon = _for_pages(CommonMiddleware)
PageCsrf = _for_pages(CsrfViewMiddleware)
PageAuthentication = _for_pages(AuthenticationMiddleware)
PageMessages = _for_pages(MessageMiddleware)
