import re

DATE = re.compile(r"(\d{4})-(\d{2})\.(\w+)")
PATH = "C:\\Users\\me"


def parse(text):
    return [m for m in DATE.findall(text) if m]
