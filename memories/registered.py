"""Dependencies on apps of higher layers. This app may not import them, so they register values when Django starts."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Registered(Generic[T]):
    """A value that an app of a higher layer registers in its AppConfig.ready(). Call the instance to get it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._value: T | None = None

    def register(self, value: T) -> None:
        self._value = value

    def __call__(self) -> T:
        if self._value is None:
            raise LookupError(f"no app has registered {self._what}")
        return self._value
