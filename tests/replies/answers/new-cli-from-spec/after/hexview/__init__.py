"""Shows bytes as hex digits and text."""
