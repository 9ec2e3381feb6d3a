"""Choose from a task which files the first request shows, and how much of each."""
