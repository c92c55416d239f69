"""Prints the licences of all packages that the released program, wheels and C library contain: a table, then each text once.

Usage: ci/figures/licences.py, in a checkout. The texts are those of the packages' own files.
"""

import json, pathlib, subprocess, sys

FEATURES = ["pageout-lab/parquet", "pageout-python/parquet"]
RELEASED = {"pageout-lab", "pageout-python", "pageout-c"}


def main():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", ",".join(FEATURES), "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] in RELEASED]
    used = set(todo)
    while todo:
        for dependency in needs[todo.pop()]["deps"]:
            # Packages that only builds or tests need are in no file of the release.
            is_part = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_part and dependency["pkg"] not in used:
                used.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    others = sorted((packages[id] for id in used if packages[id]["source"]), key=lambda package: (package["name"], package["version"]))
    without = [package["name"] for package in others if not package["license"] and not package["license_file"]]
    if without:
        sys.exit(f"packages without a licence: {', '.join(without)}")
    print(f"{len(others)} packages of others are in the release.\n")
    texts = {}
    for package in others:
        print(f"{package['name']} {package['version']}: {package['license'] or package['license_file']}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")):
                text = file.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(f"{package['name']} {package['version']}: {file.name}")
    for text, names in texts.items():
        print("\n" + "-" * 100 + "\n" + "\n".join(names) + "\n\n" + text)


if __name__ == "__main__":
    main()
