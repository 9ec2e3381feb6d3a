"""The one folder that operations may touch: paths, walks, ignore files, its repository."""
