def f():
    """Example:

    ```python
    f()
    ```
    """
