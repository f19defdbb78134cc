"""Webhooks, which send an owner's notifications to addresses of theirs. `services` creates and deletes them, `signing`
signs deliveries, `addresses` checks their targets, `sending` sends one, and `delivery` is the job that sends those
due."""
