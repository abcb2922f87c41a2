"""Execute a converted chapter in a kernel of the running Python and collect what it shows."""

from __future__ import annotations

import ast
import asyncio
import base64
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools import qmd
from tools.convert import Draft, Piece
from tools.errors import BuildError
from tools.exercises import Exercise

TIMEOUT = 600
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
TEXT_CHUNKS = (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf")
SHARP_FIGURES = "--InlineBackend.figure_formats=retina"
FOREIGN = ("PYTHON", "IPYTHON", "MPL", "DENSELAYER_PARAMETERS")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

FEEDBACK = "(lambda told: (told.exercise, told.status, told.passed, f'{told}'))(Out[[*Out][-1]])"
"""What the last cell that showed something showed, as Python writes it."""

Progress = Callable[[int, int, str], None]


@dataclass
class Results:
    """What an execution gave: inline values by token number, outputs by cell id."""

    values: dict[int, str] = field(default_factory=dict)
    outputs: dict[str, list[NotebookNode]] = field(default_factory=dict)


def execute(draft: Draft, root: Path, *, timeout: int = TIMEOUT, progress: Progress | None = None) -> Results:
    """Run all cells and inline expressions of a chapter in order, in one fresh kernel.

    The kernel is this Python, finds the packages in `code/` and `figures/`, works in `notebooks/`
    and sees none of the user's own settings.  After the last cell the exercises are solved in the
    same kernel, and nothing of that is stored.  Raises BuildError with file, line, cell and the
    Python error for a cell that raises, takes longer than `timeout` seconds, or prints a path of
    this machine or a memory address, and for an exercise whose solution does not pass.
    """
    (root / "notebooks").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernel-") as scratch:
        try:
            return _complete(_Run(draft, root, timeout, progress).all(Path(scratch)))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def _complete(work: Coroutine[Any, Any, Results]) -> Results:
    """Run to the end; in a thread of its own where this one has a running event loop, as in Jupyter."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _write_kernelspec(scratch: Path) -> Path:
    """A folder of kernelspecs whose `python3` is this interpreter, whatever the user has installed."""
    folder = scratch / "kernels" / "python3"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", SHARP_FIGURES]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder.parent


def kernel_environment(root: Path, scratch: Path) -> dict[str, str]:
    """The environment variables of a kernel: reproducible, with the packages on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(str((root / name).resolve()) for name in ("code", "figures")),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONIOENCODING": "utf-8",
        "IPYTHONDIR": str(scratch / "ipython"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": str(root / ".cache" / "matplotlib"),
        "DENSELAYER_EXERCISES": str(scratch / "exercises"),
        "TZ": "UTC",
        **dict.fromkeys(THREADS, "1"),
    }


def _warm_font_cache(environ: dict[str, str]) -> None:
    """Matplotlib says so on stderr when it builds its font cache; let it do that here."""
    cache = Path(environ["MPLCONFIGDIR"])
    if not any(cache.glob("fontlist-*.json")):
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(command, env=environ, capture_output=True, check=False)


class _Run:
    """One execution of one chapter."""

    def __init__(self, draft: Draft, root: Path, timeout: int, progress: Progress | None) -> None:
        self.draft = draft
        self.document = draft.page.document
        self.root = root
        self.timeout = timeout
        self.progress = progress or (lambda done, total, label: None)
        self.results = Results()
        self.interrupted = False

    async def all(self, scratch: Path) -> Results:
        environ = kernel_environment(self.root, scratch)
        _warm_font_cache(environ)
        client = self.client(_write_kernelspec(scratch))
        with open(scratch / "log", "w+", encoding="utf-8", errors="replace") as log:
            try:
                async with client.async_setup_kernel(env=environ, stderr=log):
                    self.listen_for_interrupt()
                    await self.steps(client)
            except RuntimeError as error:
                log.seek(0)
                raise BuildError(f"the Python kernel does not start: {error}\n{log.read()[-2000:]}") from None
        return self.results

    def listen_for_interrupt(self) -> None:
        """Let Ctrl-C end this task; nbclient's own handler would only kill the kernel under it."""
        task = asyncio.current_task()

        def stop() -> None:
            self.interrupted = True
            task.cancel()

        with suppress(RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)

    async def steps(self, client: Any) -> None:
        total = len(client.nb.cells)
        index = 0
        for piece in self.draft.pieces:
            if piece.executed:
                self.progress(index, total, piece.id)
                await self.cell(client, piece, index)
                index += 1
            for number, expression, line in piece.expressions:
                self.results.values[number] = await self.value(client, expression, line)
        for piece in self.draft.pieces:
            if piece.exercise:
                self.progress(total, total, f"solving {piece.exercise.id}")
                await self.solve(client, piece.exercise, piece.cell.line)
        self.progress(total, total, "")

    async def solve(self, client: Any, exercise: Exercise, line: int) -> None:
        """Run the solution and the check of an exercise as a student would; the check must be content."""
        what = f"the exercise {exercise.id}: its solution"
        for code, ask in ((exercise.solved, "None"), (exercise.check, FEEDBACK)):
            content = await self.ask(client, code, ask, line, what)
            told = content.get("user_expressions", {}).get("asked", content)
            if content["status"] != "ok" or told["status"] != "ok":
                raise self.document.error(line, f"{what} raises {_words(told)}")
        identifier, status, passed, text = ast.literal_eval(told["data"]["text/plain"])
        if identifier != exercise.id:
            raise self.document.error(line, f"the exercise {exercise.id}: its check shows no feedback")
        if not exercise.passes(status, passed):
            raise self.document.error(line, f"{what} does not pass ({status}):\n{text}")

    async def ask(
        self, client: Any, code: str, expression: str, line: int, what: str, silent: bool = False
    ) -> dict[str, Any]:
        """Run code, then an expression named `asked`; return what the kernel replies."""
        from nbclient.exceptions import CellTimeoutError, DeadKernelError

        message = client.kc.execute(
            code,
            silent=silent,
            store_history=not silent,
            user_expressions={"asked": expression},
            allow_stdin=False,
        )
        try:
            reply = await client.async_wait_for_reply(message, new_code_cell(code or expression))
        except CellTimeoutError:
            raise self.document.error(line, f"{what} has not finished after {self.timeout} s") from None
        except DeadKernelError:
            if self.interrupted:
                raise asyncio.CancelledError from None
            raise self.document.error(line, f"{what}: the Python process died") from None
        return reply["content"]

    def client(self, specs: Path) -> Any:
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        finder = KernelSpecManager(kernel_dirs=[str(specs)], ensure_native_kernel=False)
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=finder,
            connection_file=str(specs.parent / "connection.json"),
        )
        cells = [_code_cell(piece) for piece in self.draft.pieces if piece.executed]
        return NotebookClient(
            new_notebook(cells=cells),
            km=manager,
            timeout=self.timeout,
            shell_timeout_interval=1,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(self.root / "notebooks")}},
        )

    async def cell(self, client: Any, piece: Piece, index: int) -> None:
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

        cell = client.nb.cells[index]
        try:
            await client.async_execute_cell(cell, index)
        except CellExecutionError:
            raise self.raised(piece.cell, cell) from None
        except CellTimeoutError:
            message = f"cell {piece.id}: not finished after {self.timeout} s"
            raise self.document.error(piece.cell.line, message) from None
        except DeadKernelError:
            if self.interrupted:
                raise asyncio.CancelledError from None
            raise self.document.error(piece.cell.line, f"cell {piece.id}: the Python process died") from None
        self.results.outputs[piece.id] = self.clean(piece.cell, cell.outputs)

    def raised(self, source: qmd.Cell, cell: NotebookNode) -> BuildError:
        """The error a reader can act on: the chapter's own line and Python's words."""
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        name, value, traceback = "Error", "", ""
        if error is not None:
            name, value, traceback = error.ename, error.evalue, "\n".join(error.traceback)
        frame = re.search(r"Cell In\[\d+\], line (\d+)", ANSI.sub("", traceback))
        made = source.line == source.code_line
        line = source.code_line + int(frame[1]) - 1 if frame and not made else source.code_line
        return self.document.error(line, f"cell {source.label}: {name}: {ANSI.sub('', value)}")

    async def value(self, client: Any, expression: str, line: int) -> str:
        asked = f"__import__('builtins').str({expression})"
        what = f"inline expression `{expression}`"
        content = await self.ask(client, "", asked, line, what, silent=True)
        answer = content.get("user_expressions", {}).get("asked", {})
        if answer.get("status") != "ok":
            raise self.document.error(line, f"{what}: {_words(answer)}")
        text = ast.literal_eval(answer["data"]["text/plain"])
        if not text.strip() or "\n" in text:
            given = "several lines" if text.strip() else "nothing"
            raise self.document.error(line, f"{what} gives {given}, not a piece of a sentence")
        return text

    def clean(self, source: qmd.Cell, outputs: list[NotebookNode]) -> list[NotebookNode]:
        """Outputs without what changes from run to run; refuses what cannot be cleaned."""
        cleaned = merge_streams(outputs)
        for output in cleaned:
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {ANSI.sub('', output.evalue)}"]
            for mime in output.get("data", {}):
                if mime == "image/png":
                    output.data[mime] = clean_png(output.data[mime])
            self.refuse_volatile(source, output)
        return cleaned

    def refuse_volatile(self, source: qmd.Cell, output: NotebookNode) -> None:
        texts = [output.get("text", ""), output.get("evalue", "")]
        texts += [text for mime, text in output.get("data", {}).items() if mime.startswith("text/")]
        text = "\n".join(str(text) for text in texts)
        tags = source.options.get("tags") or []
        if ADDRESS.search(text) and "nbval-ignore-output" not in tags:
            found = ADDRESS.search(text)[0]
            raise self.document.error(
                source.line, f"cell {source.label}: prints the memory address {found}, different in every run"
            )
        for place in (str(self.root.resolve()), str(Path.home()), sys.prefix):
            if len(place) > 3 and place in text:
                raise self.document.error(
                    source.line,
                    f"cell {source.label}: prints {place}, a path that exists on this machine only",
                )


def _words(error: dict[str, Any]) -> str:
    """An error as Python tells it."""
    return f"{error.get('ename', 'Error')}: {ANSI.sub('', error.get('evalue', ''))}"


def _code_cell(piece: Piece) -> NotebookNode:
    tags = ["raises-exception"] if piece.cell.option("error", False) else []
    return new_code_cell(piece.cell.code, id=piece.id, metadata={"tags": tags})


def merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring stream outputs, stdout before stderr: how they interleave is chance."""
    merged: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}
    for output in outputs:
        if output.output_type != "stream":
            streams = {}
            merged.append(output)
        elif output.name in streams:
            streams[output.name].text += output.text
        else:
            streams[output.name] = output
            before = len(merged) - 1 if output.name == "stdout" and "stderr" in streams else len(merged)
            merged.insert(before, output)
    return merged


def clean_png(encoded: str) -> str:
    """A PNG (base64) without its text and time chunks, which name software versions and dates."""
    data = base64.b64decode(encoded)
    kept = [data[:8]]
    position = 8
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        if data[position + 4 : position + 8] not in TEXT_CHUNKS:
            kept.append(data[position : position + 12 + length])
        position += 12 + length
    return base64.b64encode(b"".join(kept)).decode("ascii")
