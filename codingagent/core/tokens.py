"""How many tokens a text has, about. No tokenizer: their vocabularies weigh tens of megabytes."""


def estimate(text: str) -> int:
    return len(text) // 4
