"""Password reset: a mailed link with Django's own tokens, and the page where a new password is chosen.

The response is the same whether or not the account exists, and the typed address is neither stored nor logged."""

from datetime import timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from gateway.accounts.logins import logins_end, logins_of
from gateway.accounts.mails import Outcome, mail_configured, mail_origin, mail_try
from gateway.jobs import enqueue_again, enqueue_kept
from gateway.requests import counted_address, network_of
from gateway.sockets import recheck_logins
from memories.audit.log import NOBODY, Action, actor_of, audit_record
from memories.errors import Conflict, Overloaded
from memories.ids import recent_ids
from memories.models import AuditEntry, Owner
from memories.password_forms import PasswordOnly
from memories.services import owner_for_user

TASK = "gateway.accounts.password_reset.password_mail"
MAX_PER_ADDRESS = 10
"""Requests from one network address per hour."""
MAX_PER_ACCOUNT = 3
"""Mails to one account per hour, regardless of who requests them."""
_MAX_ACCOUNTS = 5  # per mail address
_MAX_COUNTED = 5_000  # requests; anyone who sends more within an hour has hundreds of network addresses


@never_cache
@require_http_methods(["GET", "POST"])
def password_forgotten(request: HttpRequest) -> HttpResponse:
    """`/password/forgotten/`: ask for a mail address. 429 after too many requests from one network address."""
    if not (mail_configured() and settings.PASSWORDS):
        return render(request, "gateway/password_forgotten.html", {"off": True, "passwords": settings.PASSWORDS})
    form = PasswordResetForm(request.POST or None)
    if not form.is_valid():
        return render(request, "gateway/password_forgotten.html", {"form": form}, status=400 if form.is_bound else 200)
    if _requests_from(counted_address(request)) >= MAX_PER_ADDRESS:
        page = render(request, "gateway/password_forgotten.html", {"form": form, "too_many": True}, status=429)
        page.headers["Retry-After"] = "3600"
        return page
    _mails_queue(form, mail_origin(request))
    return render(request, "gateway/password_forgotten.html", {"sent": True})


@transaction.atomic
def _mails_queue(form: PasswordResetForm, origin: str) -> None:
    """Queue the mails to the accounts with the form's address. The accounts are locked while their mails are counted,
    so that simultaneous requests keep to the limit."""
    matching = [user.pk for user in form.get_users(form.cleaned_data["email"])]
    locked = User.objects.select_for_update(no_key=True).filter(pk__in=matching).order_by("pk")
    counts = {user: _recent_requests().filter(kind="user", object_id=str(user.pk)).count() for user in locked}
    users = [user for user, count in counts.items() if count < MAX_PER_ACCOUNT][:_MAX_ACCOUNTS]
    for user in users:
        owner = Owner.objects.filter(user=user).select_related("user").first()
        audit_record(Action.PASSWORD_FORGOTTEN, actor=NOBODY, kind="user", object_id=user.pk, owner=owner)
    if not users:
        audit_record(Action.PASSWORD_FORGOTTEN, actor=NOBODY)
    # Queue a job even without an account, so that the response takes equally long.
    enqueue_kept(TASK, ",".join(str(user.pk) for user in users), origin)


def password_mail(user_ids: str, origin: str, attempt: str = "0") -> int:
    """Job: mail a reset link to each of these accounts. Return the number of mails that were sent."""
    ids = [int(part) for part in user_ids.split(",") if part]
    outcomes = {user.pk: _mail(user, origin) for user in User.objects.filter(pk__in=ids, is_active=True)}
    if later := [str(pk) for pk, outcome in outcomes.items() if outcome is Outcome.LATER]:
        enqueue_again(TASK, ",".join(later), origin, attempt=attempt)
    return list(outcomes.values()).count(Outcome.SENT)


class _PasswordForm(PasswordOnly, SetPasswordForm):  # type: ignore[type-arg]  # of the stubs only
    """The new password, twice."""

    def save(self, commit: bool = True) -> User:
        """Store the password. Raises Conflict if it changed after the link was checked, since a link works once."""
        before = self.user.password
        user: User = super().save(commit=False)
        if not User.objects.filter(pk=user.pk, password=before).update(password=user.password):
            raise Conflict("The password was changed in the meantime.")
        return user


class NewPassword(PasswordResetConfirmView):
    """`/password/forgotten/UID/TOKEN/`. Django moves the token into the session and redirects to a URL without it."""

    form_class = _PasswordForm
    template_name = "gateway/password_new.html"

    def dispatch(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse every link while passwords are disabled."""
        if not settings.PASSWORDS:
            return render(self.request, "gateway/password_forgotten.html", {"off": True, "passwords": False})
        return super().dispatch(*args, **kwargs)

    def get_success_url(self) -> str:
        return f"{reverse('login')}?done=password"

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password and end every login of the account."""
        try:
            response = super().form_valid(form)
        except Overloaded as refusal:
            page = self.render_to_response(self.get_context_data(form=form, refusal=str(refusal)))
            page.status_code = refusal.http_status
            return page
        except Conflict:
            self.validlink = False
            return self.render_to_response(self.get_context_data())
        user, owner = form.user, owner_for_user(form.user)
        audit_record(Action.PASSWORD_CHANGE, actor=actor_of(user), kind="user", object_id=user.pk, owner=owner)
        logins_end(user, logins_of(user), by=actor_of(user))
        recheck_logins(owner.pk)
        AxesProxyHandler.reset_attempts(username=user.get_username())
        return response


def _mail(user: User, origin: str) -> Outcome:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    link = reverse("password_reset_confirm", kwargs={"uidb64": uid, "token": default_token_generator.make_token(user)})
    name = user.get_username()
    return mail_try(user.email, "Reset your Daybook password", "password", name=name, address=f"{origin}{link}")


def _requests_from(network: str) -> int:
    newest = _recent_requests().order_by("-pk").values_list("address", flat=True)[:_MAX_COUNTED]
    return sum(network_of(address) == network for address in newest)


def _recent_requests() -> "QuerySet[AuditEntry]":
    """Return the requests of the last hour, which are in the audit log."""
    past_hour = recent_ids(timezone.now(), timedelta(hours=1))
    return AuditEntry.objects.filter(action=Action.PASSWORD_FORGOTTEN, pk__range=past_hour)
