"""Synchronous versions of the product's page middlewares for Django's test client.

Two of the middlewares are coroutines. For each of them the synchronous client creates an event loop and changes threads
twice per request. Under ASGI (AsyncClient, the live server, real processes) the product's own are used."""

from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.decorators import sync_and_async_middleware

from config.serving.middleware import GetResponse, PageCsrf, PageStatic
from gateway.requests import is_api


class _StaticFilesReadOnce(PageStatic):
    """The product's middleware, but it lists the static files once per process: every client builds its own
    middlewares, and listing all static files again costs more than a page."""

    _found: tuple[dict[str, Any], list[tuple[str, str]]] | None = None

    def add_files_from_manifest(self) -> None:
        if _StaticFilesReadOnce._found is None:
            super().add_files_from_manifest()
            _StaticFilesReadOnce._found = self.files, self.directories
        self.files, self.directories = _StaticFilesReadOnce._found


class _SynchronousCsrf(PageCsrf):
    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        return None if is_api(request.path_info) else CsrfViewMiddleware.process_view(self, request, *view)


@sync_and_async_middleware
def static_files(get_response: GetResponse) -> GetResponse:
    """Stand in for `config.serving.middleware.PageStatic`."""
    if iscoroutinefunction(get_response):
        return _StaticFilesReadOnce(get_response)
    serving = _StaticFilesReadOnce(_no_file)
    serve = async_to_sync(serving)
    return lambda request: serve(request) if request.path_info in serving.files else get_response(request)


@sync_and_async_middleware
def csrf(get_response: GetResponse) -> GetResponse:
    """Stand in for `config.serving.middleware.PageCsrf`."""
    return (PageCsrf if iscoroutinefunction(get_response) else _SynchronousCsrf)(get_response)


async def _no_file(request: HttpRequest) -> HttpResponse:
    raise AssertionError(f"{request.path_info} is not a static file")
