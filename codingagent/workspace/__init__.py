"""The one folder that operations may touch: its paths, file listing, ignore files and repository."""
