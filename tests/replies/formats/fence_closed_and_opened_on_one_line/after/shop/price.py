def price(net):
    return net * 1.21


def label(net):
    return f'{price(net)} EUR'
