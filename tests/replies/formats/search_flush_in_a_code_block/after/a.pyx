def a(x):
return x
def b():
    pass


def c():
    pass
