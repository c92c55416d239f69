"""Runs the notebooks of docs/notebooks as a reader would, from the repository's folder, and fails where a cell does. Usage: notebooks.py ROOT INTO"""

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

root, into = map(pathlib.Path, sys.argv[1:])
notebooks = sorted((root / "docs/notebooks").glob("*.ipynb"))
assert notebooks, "there are none"
for path in notebooks:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(root)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    # Altair's default is a page that draws by vega-embed.
    pictures = [output for output in outputs if "vegaEmbed" in output.get("data", {}).get("text/html", "")]
    assert pictures, f"{path.name} shows no picture"
    nbformat.write(notebook, into / path.name)
    print(f"{path.name}: {len(outputs)} outputs, {len(pictures)} pictures")
