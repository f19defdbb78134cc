"""Webhooks, which send an owner's notifications to the owner's addresses. `services` creates and deletes them,
`signing` signs deliveries, `addresses` checks the targets, `sending` sends one, and `delivery` is the job for those
that are due."""
