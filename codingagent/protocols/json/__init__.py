"""Operations and events as JSON, version 1.0; to import a module of this package imports pydantic."""
