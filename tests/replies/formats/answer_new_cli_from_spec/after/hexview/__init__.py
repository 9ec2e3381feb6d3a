"""hexview: a small hex viewer."""
