import os
import unittest
from unittest import mock

from conf import core


class GetSettingTest(unittest.TestCase):
    def test_environment_wins(self):
        with mock.patch.dict(os.environ, {"APP_PORT": "1"}):
            self.assertEqual("1", core.get_setting("port", dflt="2"))

    def test_default(self):
        self.assertEqual("2", core.get_setting("nope", dflt="2"))

    def test_error(self):
        with self.assertRaisesRegex(core.SettingError, "get_setting"):
            core.get_setting("nope")
