"""The agent's own files: homes, journals, mailboxes and locks, written atomically and durably."""
