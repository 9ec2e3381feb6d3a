"""分词:把标题变成页面的名称。

    >>> name("你好,世界")
    '你好-世界'
"""

import re

_标点 = re.compile(r"[,。!?;:“”‘’「」【】()\s]+")
_LIMIT = 20


def name(title: str, *, limit: int = _LIMIT) -> str:
    """返回标题中的词,用“-”连接。"""
    words = [w for w in _标点.split(title) if w]
    # 太长时去掉最后的词…
    while words and len("-".join(words)) > limit:
        words.pop()  # 从“后面”开始
    return "-".join(words) or "【没有_标题】"


class Register:
    """已经使用的名称,"__all__" 也算一个。"""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {"__all__": 1}

    def add(self, title: str) -> str:
        count = self._taken.get(name(title), 0)
        self._taken[name(title)] = count + 1
        if count < 1:
            return name(title)
        return f"{name(title)}—{count}"
