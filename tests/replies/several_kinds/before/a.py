# one value
VALUE = 1
