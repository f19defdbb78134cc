"""The labels of columns and fields in the admin are words, not names of database columns."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, label_for_field
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest
from django.test import RequestFactory

COLUMN_NAME = re.compile(r"\b(id|seq|pid|sha256|json)\b|_| at$")


@pytest.fixture
def request_of_root(rf: RequestFactory) -> HttpRequest:
    request = rf.get("/admin/")
    request.user = User(username="root", is_staff=True, is_superuser=True)
    return request


@pytest.mark.parametrize("model", sorted(admin.site._registry, key=lambda model: str(model._meta.label)))  # type: ignore[attr-defined]
def test_labels_are_words(request_of_root: HttpRequest, model: type[Model]) -> None:
    page: Any = admin.site._registry[model]
    known = {field.name for field in model._meta.get_fields()}
    fields = flatten_fieldsets(page.get_fieldsets(request_of_root, model()))
    names = {name for name in (*page.get_list_display(request_of_root), *fields) if name in known}
    labels = {name: str(label_for_field(name, model, page)) for name in names}
    assert {name: label for name, label in labels.items() if COLUMN_NAME.search(label)} == {}
