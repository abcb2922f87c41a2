"""Store PyTorch's results again: the inputs, outputs and gradients that the agreement tables compare with."""

import argparse
import runpy
from pathlib import Path

from tools.environment import ROOT
from tools.errors import BuildError

SCRIPT = Path("tests") / "denselayer" / "make_fixtures.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    folder = ROOT / "code" / "denselayer" / "fixtures"
    parser.add_argument("--output", type=Path, default=folder, help="the folder to write to")


def run(args: argparse.Namespace) -> int:
    try:
        script = runpy.run_path(str(ROOT / SCRIPT))
    except ModuleNotFoundError as error:
        raise BuildError(f"{SCRIPT.as_posix()}: {error}: the oracle is PyTorch, install it first") from error
    script["main"](args.output)
    return 0
