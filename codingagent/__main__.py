"""`python -m codingagent`, and the console script."""

from codingagent.faces.cli import main

if __name__ == "__main__":
    main()
