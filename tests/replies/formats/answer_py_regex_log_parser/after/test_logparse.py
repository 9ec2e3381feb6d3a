import unittest

from logparse import parse, summary


def make(host="127.0.0.1", request="GET /x.gif HTTP/1.0", tail='"-" "curl/8.1"'):
    return f'{host} - frank [10/Oct/2000:13:55:36 -0700] "{request}" 200 2326 {tail}'


class ParseTest(unittest.TestCase):
    def test_ipv4(self):
        self.assertEqual(parse(make()).host, "127.0.0.1")

    def test_ipv6_short(self):
        self.assertEqual(parse(make(host="::1")).host, "::1")

    def test_ipv6_long(self):
        host = "2001:db8:85a3::8a2e:370:7334"
        self.assertEqual(parse(make(host=host)).host, host)

    def test_ipv4_mapped_ipv6(self):
        host = "::ffff:10.0.0.1"
        self.assertEqual(parse(make(host=host)).host, host)

    def test_escaped_quote_in_request(self):
        entry = parse(make(request=r'GET /a\"b HTTP/1.1'))
        self.assertEqual(entry.path, '/a"b')

    def test_escaped_quote_in_agent(self):
        entry = parse(make(tail=r'"-" "My \"Agent\""'))
        self.assertEqual(entry.agent, r'My \"Agent\"')

    def test_escaped_backslash_at_end(self):
        entry = parse(make(tail=r'"-" "x\\"'))
        self.assertEqual(entry.agent, r"x\\")

    def test_query(self):
        entry = parse(make(request="GET /a?b=c HTTP/1.1"))
        self.assertEqual((entry.path, entry.query), ("/a", "b=c"))

    def test_garbage(self):
        self.assertIsNone(parse("not a log line"))

    def test_summary(self):
        status, dropped, bots = summary([make(), make(host="::1"), "nope"])
        self.assertEqual(status[2], 2)
        self.assertEqual(dropped, 1)
        self.assertEqual(bots, 0)


if __name__ == "__main__":
    unittest.main()
