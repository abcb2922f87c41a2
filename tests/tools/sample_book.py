"""Put the sample book into a folder, with notebooks whose outputs are written down here: no kernel runs."""

from __future__ import annotations

import base64
import shutil
import struct
import zlib
from pathlib import Path

from nbformat.v4 import new_output

from tools import convert, stale
from tools.book import load_book
from tools.references import collect

SOURCE = Path(__file__).parent / "sample_book"
VERSIONS = {"python": "3.11.7", "numpy": "2.4.6", "platform": "Linux x86_64", "blas": "openblas"}


def png(width: int, height: int, per_metre: int | None = None) -> bytes:
    """A transparent PNG of this size, with a resolution when one is given."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    rows = zlib.compress(b"".join(b"\0" + bytes(4 * width) for _ in range(height)))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
    resolution = chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)) if per_metre else b""
    return b"\x89PNG\r\n\x1a\n" + header + resolution + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


IMAGE = png(600, 300, per_metre=7559)
IMAGE_TEXT = base64.b64encode(IMAGE).decode("ascii")
TABLE = """<table>
<caption>own caption</caption>
<tr><th>a</th><th>b</th></tr>
<tr><td>1</td><td>2</td></tr>
</table>"""


def stdout(text: str):
    return new_output("stream", name="stdout", text=text)


def stderr(text: str):
    return new_output("stream", name="stderr", text=text)


def display(**data: str):
    return new_output("display_data", data={name.replace("_", "/", 1): value for name, value in data.items()})


OUTPUTS = {
    "first-hello": [
        stdout("hello <world> "),
        stdout("& ```` everyone\n"),
        new_output("execute_result", data={"text/plain": "2"}, execution_count=1),
    ],
    "fig-first-line": [display(image_png=IMAGE_TEXT, text_plain="<Figure size 600x300>")],
    "tbl-first-made": [display(text_html=TABLE, text_plain="Table()")],
    "first-hidden": [],
    "first-quiet": [stdout("not shown\n")],
    "first-warned": [stderr("UserWarning: careful\n")],
    "first-error": [
        new_output(
            "error",
            ename="ZeroDivisionError",
            evalue="division by zero",
            traceback=["\x1b[31mZeroDivisionError\x1b[0m: division by zero"],
        )
    ],
    "first-inside": [stdout("inside a callout\n")],
    "solutions-import": [],
    "solutions-write": [stdout("12\n")],
}


def write(root: Path) -> Path:
    """Copy the sample book to `root` and make its notebooks."""
    shutil.copytree(SOURCE, root, dirs_exist_ok=True)
    book = load_book(root)
    registry = collect(book)
    digests = stale.Digests(book, registry)
    (root / "notebooks").mkdir(exist_ok=True)
    for page in book.notebooks:
        draft = convert.convert(page, book, registry)
        made = convert.notebook(draft, {0: "1,785"}, OUTPUTS)
        made.metadata["dense"] |= {"hash": digests.stamp(page), "executed": VERSIONS}
        page.notebook.write_text(convert.dumps(made), encoding="utf-8")
    return root
