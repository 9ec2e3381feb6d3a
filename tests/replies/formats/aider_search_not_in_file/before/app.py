def something():
    return 1
