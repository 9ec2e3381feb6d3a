TABLE = {
    "alpha_one": [1, 2, 3],
    "beta_two": [4, 5, 6],
}


def look_up(name, *rest, **more):
    return TABLE[name][0]
