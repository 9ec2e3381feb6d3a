class User:
    name = None
    age = 0

class Post:
    title = None
