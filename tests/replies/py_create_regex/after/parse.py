import re

DATE = re.compile(r"(\d{4})-(\d{2})\.(\w+)")
PATH = "C:\\Users\\me"


def parse(text):
    return DATE.findall(text)
