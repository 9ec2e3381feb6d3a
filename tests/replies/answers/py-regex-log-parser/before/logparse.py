r"""Parse access logs.

A line looks like:
127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /x.gif HTTP/1.0" 200 2326 "-" "curl/8.1"
"""
import re
import sys
from collections import Counter, namedtuple
from datetime import datetime

LINE = re.compile(
    r'^(?P<host>\d{1,3}(?:\.\d{1,3}){3})\s+(?P<ident>\S+)\s+(?P<user>\S+)\s+'
    r'\[(?P<time>[^\]]+)\]\s+'
    r'"(?P<request>[^"]*)"\s+'
    r'(?P<status>\d{3})\s+(?P<size>\d+|-)'
    r'(?:\s+"(?P<referer>[^"]*)"\s+"(?P<agent>[^"]*)")?\s*$'
)
REQUEST = re.compile(r"^(?P<method>[A-Z]+)\s+(?P<path>\S+?)(?:\?(?P<query>\S*))?\s+HTTP/(?P<version>\d\.\d)$")
BOT = re.compile(r"(?i)\b(?:bot|crawl(?:er)?|spider|slurp)\b")
HEX = re.compile(r"\\x([0-9a-fA-F]{2})")

Entry = namedtuple("Entry", "host user time method path query status size referer agent")


def unescape(text):
    return HEX.sub(lambda m: chr(int(m.group(1), 16)), text).replace('\\"', '"').replace("\\\\", "\\")


def parse(line):
    m = LINE.match(line)
    if not m:
        return None
    r = REQUEST.match(m["request"])
    if not r:
        return None
    return Entry(
        host=m["host"],
        user=None if m["user"] == "-" else m["user"],
        time=datetime.strptime(m["time"], "%d/%b/%Y:%H:%M:%S %z"),
        method=r["method"],
        path=unescape(r["path"]),
        query=r["query"] or "",
        status=int(m["status"]),
        size=0 if m["size"] == "-" else int(m["size"]),
        referer=m["referer"] or "-",
        agent=m["agent"] or "-",
    )


def summary(lines):
    status, dropped, bots = Counter(), 0, 0
    for line in lines:
        entry = parse(line)
        if entry is None:
            dropped += 1
            continue
        status[entry.status // 100] += 1
        bots += bool(BOT.search(entry.agent))
    return status, dropped, bots


if __name__ == "__main__":
    status, dropped, bots = summary(sys.stdin)
    for group, count in sorted(status.items()):
        print(f"{group}xx {count:>8}")
    print(f"dropped {dropped}, bots {bots}", file=sys.stderr)
