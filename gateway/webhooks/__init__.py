"""Webhooks: an owner's notifications, sent to addresses of theirs. `services` makes and deletes them, `signing` signs,
`addresses` says where they may go, `sending` sends one, and `delivery` is the job that goes through what is due."""
