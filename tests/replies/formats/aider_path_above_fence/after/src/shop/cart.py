class Cart:
    def __init__(self):
        self.items = []

    def total(self):
        return sum(item.price * item.quantity for item in self.items)
