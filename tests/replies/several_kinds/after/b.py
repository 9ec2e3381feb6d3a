from a import VALUE

print(VALUE)
