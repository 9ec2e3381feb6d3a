"""Decide whether a command or an operation is allowed, denied or needs approval. Pure."""
