"""Operations and events as JSON, version 1.0: what may be said, how it is read, and its schema."""
