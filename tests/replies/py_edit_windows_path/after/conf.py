ROOT = r"C:\data\new"
NAME = "a_c"
