"""Every address of Daybook."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import path

from config import health
from config.api import api, v1
from gateway import views as chat

urlpatterns = [
    path("", chat.chat, name="chat"),
    path(
        "login/",
        auth_views.LoginView.as_view(template_name="gateway/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("v1/", v1.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
]
