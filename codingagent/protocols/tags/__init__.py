"""The `[COMMAND]` blocks of the tag protocol, and the repair of damaged answers."""
