"""A mixin for Django's forms that set a password."""

from typing import Any

from django.contrib.auth.models import User


class PasswordOnly:
    """Saves only the password. Django's forms save every field of the user as it was read at the beginning of the
    request, so that an account that was deactivated or lost its role meanwhile would get them back."""

    def set_password_and_save(self, user: User, *args: Any, commit: bool = True, **kwargs: Any) -> User:
        """Set the password in the form, and save it with `commit`. Return the user."""
        super().set_password_and_save(user, *args, commit=False, **kwargs)  # type: ignore[misc]  # of Django's form
        if commit:
            user.save(update_fields=["password"])
        return user
