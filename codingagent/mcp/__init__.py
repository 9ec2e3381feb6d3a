"""The workspace as tools of the Model Context Protocol. `server` alone imports its SDK."""
