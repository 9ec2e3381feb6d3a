"""Shows: the ways in, each thin."""
