"""Checkpoint the workspace around each turn, and undo turns."""
