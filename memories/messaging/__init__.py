"""Messages between processes: notifications, hints, and cache invalidation."""
