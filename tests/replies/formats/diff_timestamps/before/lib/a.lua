-- a comment
return 1
