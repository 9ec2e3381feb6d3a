"""Values shared by every package: operations, events, the journal, the session, settings. Pure."""
