def price(net):
    return net * 1.19


def label(net):
    return f'{price(net)} EUR'
