"""The build tool of the book: ``python -m tools COMMAND``."""

from __future__ import annotations

import argparse
import importlib
import sys

from tools import environment
from tools.errors import BuildError

COMMANDS = {
    "book": ("book", "render the book from its executed notebooks into _book/"),
    "serve": ("book", "build if needed and serve the book on this machine"),
    "preview": ("notebooks", "rebuild what changes while you write"),
    "notebooks": ("notebooks", "convert the chapters and execute what is stale"),
    "figures": ("notebooks", "draw every figure into figures/out/"),
    "fixtures": ("test", "store PyTorch's results again as the oracle of the agreement tables"),
    "bench": ("test", "measure what the book says about speed and print it beside the targets"),
    "lint": ("lint", "ruff check and format, also over the code in the chapters"),
    "test": ("test", "run every test, nbval over the notebooks included"),
    "clean": ("book", "remove what was built"),
}


def overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(["usage: python -m tools COMMAND [options]", "", *lines])


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("help", "-h", "--help"):
        print(overview())
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        raise BuildError(f"There is no command {name!r}.\n\n{overview()}")
    group, summary = COMMANDS[name]
    environment.enter(group)
    command = importlib.import_module(f"tools.commands.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m tools {name}", description=summary)
    command.add_arguments(parser)
    return command.run(parser.parse_args(rest))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nStopped. Nothing that was finished before is lost.", file=sys.stderr)
        sys.exit(130)
