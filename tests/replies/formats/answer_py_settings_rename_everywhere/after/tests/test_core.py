import os
import unittest
from unittest import mock

from conf import core


class ReadSettingTest(unittest.TestCase):
    def test_environment_wins(self):
        with mock.patch.dict(os.environ, {"APP_PORT": "1"}):
            self.assertEqual("1", core.read_setting("port", default="2"))

    def test_default(self):
        self.assertEqual("2", core.read_setting("nope", default="2"))

    def test_error(self):
        with self.assertRaisesRegex(core.SettingError, "read_setting"):
            core.read_setting("nope")
