"""The commands of the command line; each module is imported when one of its commands is named."""
