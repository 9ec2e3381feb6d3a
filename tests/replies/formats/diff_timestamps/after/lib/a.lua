-- a better comment
return 1
