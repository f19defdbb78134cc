from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.hooks import on_turn_completed  # noqa: PLC0415
        from reviews.schedule import after_turn  # noqa: PLC0415

        on_turn_completed(after_turn)
