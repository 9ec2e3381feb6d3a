"""全角文字と半角文字を変換する。"""
import unicodedata

# 漢数字の表 🔢
KANJI = dict(zip("〇一二三四五六七八九", range(10)))
UNITS = {"十": 10, "百": 100, "千": 1000}


def to_half(text):
    """全角を半角にする（例：「ＡＢＣ」→「ABC」）。"""
    return "".join(chr(ord(c) - 0xFEE0) if "！" <= c <= "～" else " " if c == "　" else c for c in text)


def to_number(text):
    """「１２３」「百二十三」「123」を整数にする。"""
    # 全角数字は先に半角にする
    text = to_half(text).strip()
    if text.isascii() and text.isdigit():
        return int(text)
    total, digit = 0, 0
    for c in text:
        if c in KANJI:
            digit = KANJI[c]
        elif c in UNITS:
            total += (digit or 1) * UNITS[c]
            digit = 0
        else:
            raise ValueError(f"数字ではありません：{c!r}（{unicodedata.name(c, '?')}）")
    return total + digit
