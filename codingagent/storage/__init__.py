"""Files of our own: homes, journals, mailboxes, locks, written whole and made durable."""
