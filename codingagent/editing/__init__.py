"""Find the lines that an edit means, apply it, and show what it changed. Pure."""
