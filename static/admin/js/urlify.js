// In place of Django’s: it makes slugs from titles, and no form of ours has a slug.
