"""Values that every room speaks of: operations, events, the journal, the session, settings. Pure."""
