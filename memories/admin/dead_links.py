"""Takes links to pages that a user may not view out of the pages of the admin."""

import re
from html import unescape

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import Resolver404, resolve

# The theme leaves one link open, which must not hide those after it.
_LINK = re.compile(r'<a\b[^>]*? href="([^"]*)"[^>]*>((?:(?!<a\b).)*?)</a>', re.DOTALL)


def dead_links_remove(request: HttpRequest, page: TemplateResponse) -> None:
    """Show only the words of links to lists and rows that the request's user may not view, once the page is rendered.

    Columns, and Django's links to related rows, do not know who looks."""

    def shown(link: re.Match[str]) -> str:
        try:
            model_page = getattr(resolve(unescape(link[1]).partition("?")[0]).func, "model_admin", None)
        except Resolver404:
            return link[0]
        return link[2] if model_page and not model_page.has_view_permission(request) else link[0]

    def remove(rendered: TemplateResponse) -> None:
        rendered.content = _LINK.sub(shown, rendered.content.decode()).encode()

    page.add_post_render_callback(remove)
