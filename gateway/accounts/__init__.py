"""How people get in: passwords, OpenID, invitations, forgotten passwords, the logins of an account, and roles."""
