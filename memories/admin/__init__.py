"""The admin of the memories app, and the base classes of the other apps' admin pages. Django's autodiscovery imports
this package; each module registers its own pages."""

from memories.admin import change_pages, memory_pages, records
