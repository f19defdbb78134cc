"""Rules for which the library has no settings: codes and tokens are valid only as long as their connection, they are
bound to `/mcp`, concurrent refreshes all succeed, and reusing a code revokes the tokens issued for it."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from gateway.keys import key_hash
from gateway.oauth.addresses import same_resource
from gateway.oauth.connections import GRACE_PERIOD, connection_of, tokens_delete
from gateway.oauth.tokens import SCOPES, scopes_of
from memories.clocks import CLOCK_SKEW

# The scope that marks a code as used. An unused code has at least one scope.
_USED = ""


class Validator(OAuth2Validator):  # type: ignore[misc]  # the library ships no types
    def validate_scopes(
        self, client_id: str, scopes: Any, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Always return True. Unknown scopes are ignored, since apps also request scopes of other servers, and the
        person decides about the rights."""
        request.scopes = [scope for scope in SCOPES if scope in scopes] or [*SCOPES]
        return True

    def validate_code(self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return True for a code that has not expired and whose connection has not ended. It may have been used."""
        valid: bool = super().validate_code(client_id, code, client, request, *args, **kwargs)
        return valid and connection_of(request.user.pk, client) is not None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Return True if the address is that of the code. If the code was used, delete the tokens issued for it and
        raise InvalidGrantError. This happens in the last check, which only the app passes, or somebody who stole all
        its credentials."""
        valid: bool = super().confirm_redirect_uri(client_id, code, redirect_uri, client, request, *args, **kwargs)
        if valid and request.scopes == [_USED]:
            tokens_delete(request.user.pk, client.pk)
            raise errors.InvalidGrantError(request=request)
        return valid

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return True for a refresh token that is valid, or was just used (GRACE_PERIOD), and whose connection has not
        ended. If one is reused later, the library revokes its whole family."""
        with transaction.atomic():
            # Locked, or the library would take a token that is used between the two looks for a reused one.
            tokens = RefreshToken.objects.select_for_update().filter(token_checksum=key_hash(refresh_token))
            now = timezone.now()
            since = now - GRACE_PERIOD
            tokens.filter(revoked__gt=now + CLOCK_SKEW).update(revoked=since)  # used while a clock was ahead
            used = next((token for token in tokens if token.revoked and token.revoked > since), None)
            if used is None:
                valid: bool = super().validate_refresh_token(refresh_token, client, request, *args, **kwargs)
            else:
                request.user, request.refresh_token, request.refresh_token_instance = used.user, refresh_token, used
                valid = used.application_id == client.pk and _has_successor(used)
            return valid and connection_of(request.user.pk, client) is not None

    def save_authorization_code(self, client_id: str, code: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Store a code with the rights that the person chose, whatever the app requested, and without the parameters of
        OpenID, which is not offered."""
        key = connection_of(request.user.pk, request.client)
        if key is None:
            raise errors.AccessDeniedError(request=request)
        request.scopes = scopes_of(read_only=key.read_only)
        request.nonce = request.claims = None
        super().save_authorization_code(client_id, code, request, *args, **kwargs)

    def _save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Store new tokens in the library's transaction. Raises InvalidGrantError for the second of two concurrent
        requests with one code, and for a refresh token whose family has been revoked."""
        used = getattr(request, "refresh_token_instance", None)
        if used is not None:
            current = RefreshToken.objects.select_for_update().filter(pk=used.pk).first()
            if current is None or (current.revoked is not None and not _has_successor(current)):
                raise errors.InvalidGrantError(request=request)
            if current.revoked is not None:
                self._save_sibling_tokens(token, request, current)
                return
        else:
            self._use_code(request)
            # A connection has one token family: a new sign-in revokes tokens that may have been stolen.
            tokens_delete(request.user.pk, request.client.pk, codes=False)
        super()._save_bearer_token(token, request, *args, **kwargs)

    def _save_sibling_tokens(self, token: Any, request: Any, used: Any) -> None:
        """Store tokens in addition to those already issued for a refresh token, in the same family."""
        self._check_and_set_request_resource(request)
        expires = timezone.now() + timedelta(seconds=token["expires_in"])
        access_token = self._create_access_token(expires, request, token)
        self._create_refresh_token(request, token["refresh_token"], access_token, used)

    @staticmethod
    def _use_code(request: Any) -> None:
        """Mark a code as used. Delete the previously used one, since reusing it must not revoke the new tokens."""
        codes = Grant.objects.filter(application=request.client)
        codes.filter(user=request.user, scope=_USED).delete()
        if not codes.filter(code=request.code).exclude(scope=_USED).update(scope=_USED):
            raise errors.InvalidGrantError(request=request)

    def invalidate_authorization_code(self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: _use_code marks the code in the transaction that stores the tokens, so that only one of two
        concurrent requests gets tokens."""

    def _check_and_set_request_resource(self, request: Any) -> None:
        """Set the resource of the new token to that of its code or refresh token. Raises CustomOAuth2Error
        (`invalid_target`) if the request has another one."""
        used = getattr(request, "refresh_token_instance", None)
        used = used or Grant.objects.filter(code=request.code, application=request.client).first()
        bound = list(used.resource) if used else []
        requested = [value for key, value in request.decoded_body or [] if key == "resource"]
        if not bound or not all(same_resource(value, bound[0]) for value in requested):
            raise errors.CustomOAuth2Error(
                error="invalid_target", description="This token is not for that resource.", request=request
            )
        request.resource = bound


def _has_successor(used: Any) -> bool:
    """Return True if a refresh token was used, and the access token issued for it was neither replaced nor revoked."""
    return bool(AccessToken.objects.filter(source_refresh_token=used).exists())
