import unittest

from logparse import parse, summary

TAIL = '- frank [10/Oct/2000:13:55:36 -0700] "GET /x.gif HTTP/1.0" 200 2326 "-" "curl/8.1"'


def line(request, host="127.0.0.1", rest='200 12 "-" "curl/8.1"'):
    return f'{host} - - [10/Oct/2000:13:55:36 -0700] "{request}" {rest}\n'


class ParseTest(unittest.TestCase):
    def test_ipv4(self):
        entry = parse("127.0.0.1 " + TAIL)
        self.assertEqual("127.0.0.1", entry.host)
        self.assertEqual("frank", entry.user)
        self.assertEqual("/x.gif", entry.path)
        self.assertEqual(2326, entry.size)
        self.assertEqual("2000-10-10T13:55:36-07:00", entry.time.isoformat())

    def test_ipv6(self):
        for host in (
            "::1",
            "::",
            "2001:db8::ff00:42:8329",
            "2001:0db8:0000:0000:0000:ff00:0042:8329",
            "FE80::1",
            "fe80::1%eth0",
            "::ffff:192.0.2.128",
        ):
            with self.subTest(host):
                entry = parse(f"{host} {TAIL}")
                self.assertIsNotNone(entry)
                self.assertEqual(host, entry.host)

    def test_not_a_host(self):
        for host in ("", "1.2.3", "example", "12345::1", "g::1"):
            with self.subTest(host):
                self.assertIsNone(parse(f"{host} {TAIL}"))

    def test_escaped_quote_in_request(self):
        entry = parse(line(r"GET /a\"b HTTP/1.1"))
        self.assertEqual('/a"b', entry.path)
        self.assertEqual("GET", entry.method)

    def test_escaped_backslash_before_the_closing_quote(self):
        entry = parse(line("GET / HTTP/1.1", rest=r'200 12 "-" "agent\\"'))
        self.assertEqual(r"agent\\", entry.agent)

    def test_escaped_quotes_in_referer_and_agent(self):
        entry = parse(line("GET / HTTP/1.1", rest=r'200 12 "http://x/\"y\"" "a \"b\" c"'))
        self.assertEqual(r"http://x/\"y\"", entry.referer)
        self.assertEqual(r"a \"b\" c", entry.agent)

    def test_hex_escape(self):
        self.assertEqual("/aAb", parse(line(r"GET /a\x41b HTTP/1.1")).path)

    def test_query(self):
        entry = parse(line(r"GET /s?q=\"x\"&n=1 HTTP/2.0"))
        self.assertEqual("/s", entry.path)
        self.assertEqual(r"q=\"x\"&n=1", entry.query)

    def test_short_line(self):
        entry = parse(line("HEAD / HTTP/1.1", rest="304 -"))
        self.assertEqual(0, entry.size)
        self.assertEqual("-", entry.agent)
        self.assertIsNone(entry.user)

    def test_unescaped_quote_is_dropped(self):
        self.assertIsNone(parse(line('GET /a"b HTTP/1.1')))

    def test_garbage_is_dropped(self):
        self.assertIsNone(parse("hello\n"))
        self.assertIsNone(parse(line("-")))


class SummaryTest(unittest.TestCase):
    def test_summary(self):
        status, dropped, bots = summary([
            line("GET / HTTP/1.1", host="::1"),
            line(r"GET /a\"b HTTP/1.1", rest='404 0 "-" "some bot"'),
            "garbage\n",
        ])
        self.assertEqual({2: 1, 4: 1}, dict(status))
        self.assertEqual(1, dropped)
        self.assertEqual(1, bots)


if __name__ == "__main__":
    unittest.main()
