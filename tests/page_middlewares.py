"""The product's middlewares of pages for test clients.

Two of them are coroutines, for which Django's synchronous client makes an event loop and changes threads, twice in each
request. In the client's chain their synchronous counterparts stand here. Under ASGI (AsyncClient, the live server, real
processes) they are the product's own."""

from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.decorators import sync_and_async_middleware

from config.serving.middleware import GetResponse, PageCsrf, PageStatic
from gateway.requests import is_api


class _StaticFilesReadOnce(PageStatic):
    """The product's, but it looks static files up once in a process: every client builds its middlewares anew, and
    reading the names of all static files again costs more than a page."""

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
    """`config.serving.middleware.PageStatic`."""
    if iscoroutinefunction(get_response):
        return _StaticFilesReadOnce(get_response)
    serving = _StaticFilesReadOnce(_no_file)
    serve = async_to_sync(serving)
    return lambda request: serve(request) if request.path_info in serving.files else get_response(request)


@sync_and_async_middleware
def csrf(get_response: GetResponse) -> GetResponse:
    """`config.serving.middleware.PageCsrf`."""
    return (PageCsrf if iscoroutinefunction(get_response) else _SynchronousCsrf)(get_response)


async def _no_file(request: HttpRequest) -> HttpResponse:
    raise AssertionError(f"{request.path_info} is no static file")
