"""Find secrets in text by rules that are data; no file is read here."""
