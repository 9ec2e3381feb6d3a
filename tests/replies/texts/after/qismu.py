"""أسماء الصفحات من عناوينها."""

REPLIES = {
    "مرحبا": "أهلاً، كيف حالك؟",
    "شكرا": "عفواً — على الرحب والسعة",
    "صباح_الخير": "صباح النور",
    "שלום": "ש״ס ו־גרשיים",
    "نیم‌فاصله": "می‌شود",
}


def answer(word: str) -> str:
    # إذا لم توجد الكلمة، نعيد «لا أعرف»
    return REPLIES.get(word, "لا أعرف «بعد»")


def known() -> list[str]:
    """قائمة الكلمات المعروفة."""
    return sorted(w for w in REPLIES if w and not w.startswith("_"))
