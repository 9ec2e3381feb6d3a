import argparse

from conf.core import SettingError, get_setting, get_settings, load


def main(argv=None):
    parser = argparse.ArgumentParser(prog="conf")
    parser.add_argument("--file", default="settings.json")
    parser.add_argument("name", nargs="+")
    args = parser.parse_args(argv)
    load(args.file)
    if len(args.name) > 1:
        for key, value in get_settings(*args.name).items():
            print(f"{key}={value}")
        return 0
    try:
        print(get_setting(args.name[0]))
    except SettingError as error:
        print(error)
        return 1
    return 0
