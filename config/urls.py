"""All URLs of Daybook."""

from typing import NoReturn

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.http import Http404, HttpRequest
from django.urls import path, re_path
from django.views.decorators.cache import cache_control
from django.views.generic import RedirectView, TemplateView

from config import health
from config.api import api, v1
from config.metrics import metrics
from gateway.accounts import invitations, openid, password_reset, sign_in
from gateway.chat import account, account_access
from gateway.chat import views as chat
from gateway.mcp.api import mcp
from gateway.oauth import consent, endpoints, registration
from memories.page import views as memories
from reviews.page import views as reviews


def no_page(request: HttpRequest, **captured: str) -> NoReturn:
    raise Http404


# The manifest lets a browser install Daybook as an app. There is no service worker: browsers do not require one, and
# offline Daybook could not show anything useful.
manifest = TemplateView.as_view(template_name="gateway/manifest.json", content_type="application/manifest+json")
handler400 = "config.serving.middleware.page_unreadable"
handler403 = "config.serving.middleware.page_not_allowed"
handler404 = "config.serving.middleware.page_missing"
handler500 = "config.serving.middleware.page_failed"
urlpatterns = [
    # The APIs come first, since patterns are tried in order and these are used most.
    path("v1/", v1.urls),
    path("api/", api.urls),
    path("mcp", mcp.urls),
    path("", chat.chat, name="chat"),
    path("manifest.webmanifest", cache_control(public=True, max_age=3600)(manifest), name="manifest"),
    path("new/", chat.chat_new, name="chat-new"),
    path("c/<uuid:session_id>/", chat.chat_session, name="chat-session"),
    path("c/<uuid:session_id>/attached/<int:seq>/<int:index>/", chat.chat_attachment, name="chat-attachment"),
    path("fragments/sessions/", chat.sessions_fragment, name="sessions-fragment"),
    path("fragments/turn/<uuid:session_id>/<uuid:run_id>/", chat.turn_fragment, name="turn-fragment"),
    path("fragments/turns/<uuid:session_id>/", chat.turns_fragment, name="turns-fragment"),
    path("fragments/review/<uuid:review_id>/", chat.review_fragment, name="review-fragment"),
    path("memories/", memories.memories, name="memories"),
    path("fragments/memories/", memories.list_fragment),
    path("fragments/memories/summary/", memories.summary_fragment),
    path("fragments/memories/<int:number>/", memories.row_fragment),
    path("fragments/memories/<int:number>/edit/", memories.edit_fragment),
    path("fragments/memories/<int:number>/history/", memories.history_fragment),
    path("reviews/", reviews.reviews, name="reviews"),
    path("reviews/<uuid:review_id>/cancel/", reviews.review_cancel),
    path("fragments/reviews/", reviews.timeline_fragment),
    path("fragments/consolidation/", reviews.consolidation_fragment),
    path("fragments/document/", reviews.document_fragment),
    path("account/", account.account, name="account"),
    path("account/password/", account.password),
    path("account/time-zone/", account.time_zone),
    path("account/keys/", account.key_create),
    path("account/keys/<uuid:key_id>/revoke/", account_access.key_revoke),
    path("account/apps/<uuid:key_id>/disconnect/", account_access.app_end),
    path("account/delete/", account.delete),
    path("account/deleting/<uuid:erasure_id>/", account.deleting, name="account-deleting"),
    path("account/logins/end/", account_access.others_end),
    path("account/logins/<uuid:login_id>/end/", account_access.login_end),
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("login/sso/", openid.openid_begin, name="openid-begin"),
    path("login/sso/callback/", openid.openid_callback, name="openid-callback"),
    path("password/forgotten/", password_reset.password_forgotten, name="password-forgotten"),
    path("password/forgotten/<uidb64>/<token>/", password_reset.NewPassword.as_view(), name="password_reset_confirm"),
    path("invitation/<str:token>/", invitations.invitation, name="invitation"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/login/", sign_in.admin_sign_in),
    path("admin/password_change/", RedirectView.as_view(url="/account/")),
    # Django's page for links to the site fails for rows with a UUID, and matching its pattern takes quadratic time.
    re_path("^admin/r/", no_page),
    path("admin/", admin.site.urls),
    path(".well-known/oauth-protected-resource", endpoints.protected_resource),
    path(".well-known/oauth-protected-resource/mcp", endpoints.protected_resource),
    path(".well-known/oauth-authorization-server", endpoints.authorization_server),
    path("oauth/register", registration.register),
    path("oauth/authorize", consent.authorize),
    path("oauth/token", endpoints.token),
    path("oauth/revoke", endpoints.revoke),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
]
