"""Write what the model is told: the guide, the request, its list of files. Pure."""
