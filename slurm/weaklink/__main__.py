"""Entry point of ``python3 -m weaklink``, of the zipapp and of the console script."""

import sys

from weaklink.cli import main


def console() -> None:
    """Run the command line and exit with its code."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    console()
