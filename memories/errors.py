"""Expected errors. Their codes are public: adding one is fine, but renaming one breaks clients.

DomainError
├── InvalidRequest 400   ├── Unauthorized 401   ├── Forbidden 403   ├── NotFound 404 ── ModelNotFound 404
├── Conflict 409         ├── OverBudget 409     ├── TooLarge 413    ├── UnsupportedMediaType 415
├── BlockedByScan 422    ├── RateLimited 429    ├── UpstreamError 502
└── Overloaded 503       └── UpstreamTimeout 504
"""

from typing import Any, ClassVar


class DomainError(Exception):
    """An expected error. The code is for programs, the message for people."""

    code: ClassVar[str] = "invalid_request"
    http_type: ClassVar[str] = "invalid_request_error"
    http_status: ClassVar[int] = 400

    def __init__(self, message: str, *, param: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.param = param
        self.details = details
        self.headers: dict[str, str] = {}  # of the error response

    def as_json(self) -> dict[str, Any]:
        """Return the body of the error response, the same for every API."""
        return {
            "error": {
                "message": str(self),
                "type": self.http_type,
                "param": self.param,
                "code": self.code,
                "details": self.details,
            }
        }


class InvalidRequest(DomainError):
    pass


class Unauthorized(DomainError):
    code, http_type, http_status = "unauthorized", "authentication_error", 401


class Forbidden(DomainError):
    code, http_type, http_status = "forbidden", "permission_error", 403


class NotFound(DomainError):
    code, http_type, http_status = "not_found", "not_found_error", 404


class ModelNotFound(NotFound):
    code = "model_not_found"


class Conflict(DomainError):
    code, http_status = "conflict", 409


class OverBudget(DomainError):
    """details: target, used, limit, needed (characters)."""

    code, http_status = "over_budget", 409


class TooLarge(DomainError):
    code, http_status = "too_large", 413


class UnsupportedMediaType(DomainError):
    code, http_status = "unsupported_media_type", 415


class BlockedByScan(DomainError):
    """details: rule, kind. The message never repeats the text that was found."""

    code, http_status = "blocked_by_scan", 422


class RateLimited(DomainError):
    code, http_type, http_status = "rate_limited", "rate_limit_error", 429


class UpstreamError(DomainError):
    code, http_type, http_status = "upstream_error", "api_error", 502


class Overloaded(DomainError):
    code, http_type, http_status = "overloaded", "api_error", 503


class UpstreamTimeout(DomainError):
    code, http_type, http_status = "upstream_timeout", "api_error", 504
