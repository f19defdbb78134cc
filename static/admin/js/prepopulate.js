// Replaces Django’s script, which makes slugs from titles: none of our forms has a slug.
