"""Rules for the library that it has no settings for: codes and tokens are valid only while their connection is, they
are bound to `/mcp`, and two requests that refresh at the same time do not end the connection."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from oauth2_provider.models import Grant, RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from gateway.oauth.addresses import same_resource
from gateway.oauth.connections import connection_of, token_hash, tokens_delete
from gateway.oauth.tokens import SCOPES, scopes_of

# A refresh token that was used within this time is refused, but not treated as stolen: apps with several processes
# refresh at the same time.
_RACE = timedelta(seconds=10)


class Validator(OAuth2Validator):  # type: ignore[misc]  # the library ships no types
    """The library's validator with our rules."""

    def validate_scopes(
        self, client_id: str, scopes: Any, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Return True always. Unknown scopes are ignored: apps ask for scopes of other servers too, and the person
        decides about the rights."""
        request.scopes = [scope for scope in SCOPES if scope in scopes] or [*SCOPES]
        return True

    def validate_code(self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return True for a code that is valid and whose connection was not ended meanwhile."""
        valid: bool = super().validate_code(client_id, code, client, request, *args, **kwargs)
        return valid and connection_of(request.user.pk, client) is not None

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return True for a refresh token that is valid and whose connection was not ended. If one is used again, the
        library ends its whole family, except within _RACE."""
        used = RefreshToken.objects.filter(token_checksum=token_hash(refresh_token), revoked__gt=timezone.now() - _RACE)
        if used.exists():
            return False
        valid: bool = super().validate_refresh_token(refresh_token, client, request, *args, **kwargs)
        return valid and connection_of(request.user.pk, client) is not None

    def save_authorization_code(self, client_id: str, code: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Store a code with the rights that the person chose, whatever the app asked for."""
        key = connection_of(request.user.pk, request.client)
        if key is None:
            raise errors.AccessDeniedError(request=request)
        request.scopes = scopes_of(read_only=key.read_only)
        super().save_authorization_code(client_id, code, request, *args, **kwargs)

    def _save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Store new tokens, in the library's transaction. Raises InvalidGrantError for the second of two requests that
        use a code or a refresh token at once."""
        used = getattr(request, "refresh_token_instance", None)
        if used is not None:
            now = RefreshToken.objects.select_for_update().get(pk=used.pk)
            if now.revoked is not None:
                raise errors.InvalidGrantError(request=request)
        else:
            # A connection has one family of tokens: a new sign-in ends tokens that may have been stolen.
            tokens_delete(request.user.pk, request.client.pk, codes=False)
        super()._save_bearer_token(token, request, *args, **kwargs)
        if used is None:
            super().invalidate_authorization_code(request.client_id, request.code, request)

    def invalidate_authorization_code(self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: a code is deleted in the transaction that stores its tokens, so that of two requests with the
        same code only one gets tokens."""

    def _check_and_set_request_resource(self, request: Any) -> None:
        """Set the resource of the new token to that of its code or refresh token. Raises CustomOAuth2Error
        (`invalid_target`) if the request names another one."""
        bound = self._bound_resource(request)
        asked = [value for key, value in request.decoded_body or [] if key == "resource"]
        if not bound or not all(same_resource(value, bound[0]) for value in asked):
            raise errors.CustomOAuth2Error(
                error="invalid_target", description="This token is not for that resource.", request=request
            )
        request.resource = bound

    @staticmethod
    def _bound_resource(request: Any) -> list[str]:
        used = getattr(request, "refresh_token_instance", None)
        if used is not None:
            return list(used.resource)
        code = Grant.objects.filter(code=request.code, application=request.client).first()
        return list(code.resource) if code else []
