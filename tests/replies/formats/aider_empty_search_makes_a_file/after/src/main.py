from util.strings import shout

print(shout("hi"))
