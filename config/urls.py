"""Every address of Daybook."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import path

from config import health
from config.api import api, v1
from config.metrics import metrics
from gateway import sign_in
from gateway.chat import account
from gateway.chat import views as chat
from gateway.mcp.api import mcp
from memories.page import views as memories
from reviews.page import views as reviews

handler500 = "config.middleware.page_failed"
urlpatterns = [
    path("", chat.chat, name="chat"),
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
    path("fragments/memories/import/", memories.import_fragment),
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
    path("account/keys/<uuid:key_id>/revoke/", account.key_revoke),
    path("account/delete/", account.delete),
    path("account/deleting/<uuid:erasure_id>/", account.deleting, name="account-deleting"),
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/login/", sign_in.admin_sign_in),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("v1/", v1.urls),
    path("mcp", mcp.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
]
