def price(net):
    return net * 1.21
