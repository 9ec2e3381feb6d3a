# src/tools/add.py
def add(a, b):
    return a + b
