def f():
    a = 2
    b = 2
    c = 3
    return a
