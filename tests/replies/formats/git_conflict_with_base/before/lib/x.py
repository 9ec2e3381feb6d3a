value = 1
other = 3
