"""Read what comes in, and word what goes out, for each wire. Pure."""
