"""The page: the loop in a browser. Only this package imports starlette, uvicorn and jinja2."""
