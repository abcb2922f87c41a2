"""The commands of the package: ``python -m denselayer COMMAND``."""

import argparse
import importlib
import sys

COMMANDS = {
    "bench": ("_bench_command", "measure this machine, and print its numbers beside the book's"),
    "doctor": ("_doctor_command", "name the defect in the backward pass of a layer in a file"),
    "exercises": ("_exercises_command", "do the exercises of the book in a terminal"),
    "grade": ("_grade_command", "check the submissions of a class again, and write a table and a page"),
}
"""Name of a command to its module, with ``add_arguments(parser)`` and ``run(args)``, and a summary."""


def main(arguments):
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m denselayer", description=__doc__.splitlines()[0])
    choices = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        command = importlib.import_module(f".{module}", __package__)
        one = choices.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    args = parser.parse_args(arguments)
    try:
        return args.run(args)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
