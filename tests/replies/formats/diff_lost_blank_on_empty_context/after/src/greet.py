import sys

def a(x):
    return 1

def b():
    # later
    return 2
