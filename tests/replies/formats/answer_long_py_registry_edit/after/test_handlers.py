import csv
import io
import json
import unittest

from handlers import HANDLERS

EDITOR = {"name": "eve", "permissions": ["edit"]}
ADMIN = {"name": "ada", "permissions": ["admin", "edit"]}


class AdminOnlyTest(unittest.TestCase):
    def check(self, action):
        with self.assertRaises(PermissionError):
            HANDLERS[action](EDITOR, [{"id": 1}])
        result = json.loads(HANDLERS[action](ADMIN, [{"id": 1}]))
        self.assertEqual(result["action"], action)
        self.assertEqual(result["count"], 1)

    def test_delete_needs_admin(self):
        self.check("delete")

    def test_archive_needs_admin(self):
        self.check("archive")


class ExportTest(unittest.TestCase):
    def test_returns_csv(self):
        text = HANDLERS["export"](EDITOR, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
        self.assertEqual(text, "id,name,last\n1,a,export\n2,b,export\n")

    def test_quotes_special_characters(self):
        text = HANDLERS["export"](EDITOR, [{"name": 'x, "y"'}])
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(rows[0]["name"], 'x, "y"')

    def test_skips_locked(self):
        text = HANDLERS["export"](EDITOR, [{"id": 1, "locked": True}, {"id": 2}])
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["id"] for row in rows], ["2"])

    def test_still_needs_edit(self):
        with self.assertRaises(PermissionError):
            HANDLERS["export"]({"name": "bob"}, [])


if __name__ == "__main__":
    unittest.main()
