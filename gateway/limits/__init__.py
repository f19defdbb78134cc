"""What keys and people may use and have used: requests a minute, answers at once, tokens and money of the UTC day."""
