"""User accounts: sign-in with passwords or OpenID, invitations, password resets, active logins, and roles."""
