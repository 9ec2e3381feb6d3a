"""Write text for the model: the guide, the request, its list of files. Pure."""
