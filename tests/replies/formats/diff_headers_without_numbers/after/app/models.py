class User:
    name = ""
    age = 0

class Post:
    title = ""
