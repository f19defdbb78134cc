"""Every address of Daybook."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import path

from config import health
from config.api import api, v1
from config.metrics import metrics
from gateway import views as chat
from gateway.mcp.api import mcp

urlpatterns = [
    path("", chat.chat, name="chat"),
    path("new/", chat.chat_new, name="chat-new"),
    path("c/<uuid:session_id>/", chat.chat_session, name="chat-session"),
    path("fragments/sessions/", chat.sessions_fragment, name="sessions-fragment"),
    path("fragments/turn/<uuid:session_id>/<uuid:run_id>/", chat.turn_fragment, name="turn-fragment"),
    path("fragments/turns/<uuid:session_id>/", chat.turns_fragment, name="turns-fragment"),
    path("fragments/review/<uuid:review_id>/", chat.review_fragment, name="review-fragment"),
    path(
        "login/",
        auth_views.LoginView.as_view(template_name="gateway/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("v1/", v1.urls),
    path("mcp", mcp.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
]
