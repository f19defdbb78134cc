"""Sign-in: its page, the limits on failed attempts (stored by django-axes), and the audit and log entries. What people
type is neither stored nor logged; a name without an account is stored as a keyed hash."""

import copy
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.views import LoginView
from django.db.models import Max, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from gateway.accounts.logins import login_begin
from gateway.oauth.addresses import keep_opener
from gateway.requests import client_address
from memories.audit.log import NOBODY, Action, actor_of, audit_record
from memories.clocks import long_ago, long_since
from memories.errors import InvalidRequest, Overloaded, RateLimited
from memories.models import Owner
from memories.number_words import counted
from memories.services import owner_for_user, owner_time_zone_set

logger = logging.getLogger("daybook.sign_in")
# Failures within the cool-off time from one address, and for one account: so high that only a distributed attack locks
# somebody out. AXES_FAILURE_LIMIT is the limit for one account from one address.
LIMIT_PER_ADDRESS = 50
LIMIT_PER_ACCOUNT = 100
PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"  # noqa: S105 - a class name
RECENT = timedelta(minutes=15)
_PASSWORDS_DISABLED = "Passwords are not used here."
_DONE = {"password": "Password changed. Sign in with the new one."}


def account_name(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str:
    """Return the name under which failures are counted: the username, or a keyed hash of the typed text if there is no
    such account (people type passwords into the wrong field)."""
    typed = str((credentials or {}).get("username") or "")
    if User.objects.filter(username=typed).exists():
        return typed
    return f"?{salted_hmac('daybook.sign_in', typed).hexdigest()[:32]}"


class AttemptsHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes ships no types
    """Counts failures per account and address, per address, and per account, each with its own limit."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the highest of the three counts, each scaled to AXES_FAILURE_LIMIT."""
        sums = [
            rows.aggregate(sum=Sum("failures_since_start"))["sum"] or 0
            for rows in self.get_user_attempts(request, credentials)
        ]
        both, address, account = sums
        limit = settings.AXES_FAILURE_LIMIT
        return max(both, address * limit // LIMIT_PER_ADDRESS, account * limit // LIMIT_PER_ACCOUNT)

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Reset only the count of this account from this address, since an attacker may have an account, too."""
        both = self.filter_user_attempts(request, credentials)[0]
        return int(both.delete()[0])

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        """Count and record a failure, unless it was refused without checking the password."""
        if request is None:
            return
        refused = request.axes_locked_out  # type: ignore[attr-defined]  # set by axes
        stripped = copy.copy(request)  # axes would store the submitted data
        stripped.GET, stripped.POST = QueryDict(), QueryDict()
        super().user_login_failed(sender, credentials, stripped, **kwargs)
        request.axes_locked_out = locked = stripped.axes_locked_out  # type: ignore[attr-defined]
        if refused:
            return
        user = User.objects.filter(username=account_name(request, credentials)).first()
        owner = Owner.objects.filter(user=user).select_related("user").first() if user else None
        kind, key = ("user", user.pk) if user else ("", "")
        audit_record(Action.SIGN_IN_FAILED, actor=NOBODY, kind=kind, object_id=key, owner=owner)
        logger.warning(
            "a sign-in failed: %s, from %s", f"user {user.pk}" if user else "no such account", client_address(request)
        )
        if locked:
            audit_record(Action.SIGN_IN_REFUSED, actor=NOBODY, kind=kind, object_id=key, owner=owner)
            logger.warning("too many failed sign-ins from %s: it has to wait", client_address(request))


class SignIn(LoginView):
    """`/login/`. 429 with Retry-After after too many failures, 503 if too many people are signing in."""

    template_name = "gateway/login.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        keep_opener(response, self.get_redirect_url())
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the configured sign-in methods."""
        methods = {"passwords": settings.PASSWORDS, "openid": settings.OIDC, "next": self.get_redirect_url()}
        done = _DONE.get(self.request.GET.get("done", ""), "")
        context: dict[str, Any] = super().get_context_data(**methods, done=done, **kwargs)
        return context

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.PASSWORDS:
            return _with_status(self.render_to_response(self.get_context_data(refusal=_PASSWORDS_DISABLED)), 403)
        try:
            return super().post(request, *args, **kwargs)
        except Overloaded as refusal:
            page = self.render_to_response(self.get_context_data(refusal=str(refusal), form=None))
            return _with_status(page, 503, seconds=5)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if not getattr(self.request, "axes_locked_out", False):
            return super().form_invalid(form)
        minutes = _wait_minutes(self.request, form.data.get("username", ""))
        page = self.render_to_response(self.get_context_data(form=form, refusal=_too_many(minutes)))
        return _with_status(page, 429, seconds=minutes * 60)


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """`/admin/login/`: redirect to the sign-in page; 403 for a signed-in user who may not use the admin."""
    if request.user.is_authenticated and not (request.user.is_active and request.user.is_staff):
        return render(request, "gateway/not_for_you.html", status=403)
    return HttpResponseRedirect(f"{reverse('login')}?{request.GET.urlencode()}".rstrip("?"))


def has_password(user: AbstractBaseUser) -> bool:
    """Return True if the user may sign in with a password."""
    return bool(settings.PASSWORDS) and user.has_usable_password()


def signed_in_recently(user: AbstractBaseUser) -> bool:
    """Return True if the user signed in within RECENT, which is the proof of identity for people without a password."""
    return user.last_login is not None and not long_since(user.last_login, timezone.now(), age=RECENT)


def password_is_correct(request: HttpRequest, user: AbstractBaseUser, password: str) -> bool:
    """Check the user's password; a wrong one counts as a failed sign-in. Raises RateLimited, Overloaded."""
    if authenticate(request, username=user.get_username(), password=password) is not None:
        return True
    if getattr(request, "axes_locked_out", False):
        raise RateLimited(_too_many(_wait_minutes(request, user.get_username())))
    return False


def attempts_purge() -> None:
    """Delete failures that are older than the cool-off time, or would count for longer because a clock was ahead."""
    AccessAttempt.objects.filter(long_ago("attempt_time", timezone.now(), age=settings.AXES_COOLOFF_TIME)).delete()


def signed_in(sender: Any, request: HttpRequest | None, user: AbstractBaseUser, **kwargs: Any) -> None:
    """Receiver of django.contrib.auth's `user_logged_in`."""
    audit_record(Action.SIGN_IN, actor=actor_of(user))
    if request is not None:
        login_begin(request, user)
        _save_time_zone(user, request.COOKIES.get("daybook_zone", ""))


def signed_out(sender: Any, request: HttpRequest | None, user: AbstractBaseUser | None, **kwargs: Any) -> None:
    """Receiver of django.contrib.auth's `user_logged_out`."""
    if user is not None and user.pk:
        audit_record(Action.SIGN_OUT, actor=actor_of(user))


def _save_time_zone(user: AbstractBaseUser, name: str) -> None:
    """Save the time zone that the sign-in page's script names, unless it is unknown or the person has one."""
    if name and not (owner := owner_for_user(user)).time_zone:
        with suppress(InvalidRequest):
            owner_time_zone_set(owner.pk, name)


def _wait_minutes(request: HttpRequest, name: str) -> int:
    """Return for how many more minutes sign-in is refused: at least 1, at most the cool-off time."""
    attempts = AxesProxyHandler.get_implementation().get_user_attempts(request, {"username": name})
    newest = [rows.aggregate(at=Max("attempt_time"))["at"] for rows in attempts]
    ends = max((at for at in newest if at), default=timezone.now()) + settings.AXES_COOLOFF_TIME
    return max(1, -int((timezone.now() - ends).total_seconds() // 60))


def _too_many(minutes: int) -> str:
    return f"Too many failed attempts. Wait {counted(minutes, 'minute')}, then try again."


def _with_status(page: HttpResponse, status: int, *, seconds: int = 0) -> HttpResponse:
    page.status_code = status
    if seconds:
        page.headers["Retry-After"] = str(seconds)
    return page
