# one value
VALUE = 2
