"""Execute operations, and lead a session from one request to the next."""
