"""Prints the licences of all packages that the released program, wheels and C library contain: a table, then each text once.

Usage: ci/figures/licences.py, in a checkout. The texts are those of the packages' own files.
"""

import json, pathlib, subprocess, sys

FEATURES = ["pageout-lab/parquet", "pageout-python/parquet"]
RELEASED = {"pageout-lab", "pageout-python", "pageout-c"}
TARGETS = [f"{machine}-unknown-linux-{libc}" for machine in ["x86_64", "aarch64"] for libc in ["gnu", "musl"]]
#: Texts of other parts: that of musl comes with zig, which ci/release.sh installs.
BUNDLED = {"uPlot": "crates/lab/src/report/assets/LICENSE-uPlot", "musl": "target/tools/lib/python*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"}


def is_macro(package):
    """Macros run in the compiler: they are in no file of the release."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def packages():
    """All packages of the release by their ids, and of each the ids of those that it needs, without those that only builds or tests need."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", ",".join(FEATURES)]
    for target in TARGETS:
        command += ["--filter-platform", target]
    metadata = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    known = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in known.items() if package["name"] in RELEASED]
    needs = {}
    while todo:
        id = todo.pop()
        parts = [one["pkg"] for one in nodes[id]["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]
        needs[id] = [part for part in parts if not is_macro(known[part])]
        todo += [other for other in needs[id] if other not in needs]
    return {id: known[id] for id in needs}, needs


def main():
    used, _ = packages()
    others = sorted((package for package in used.values() if package["source"]), key=lambda package: (package["name"], package["version"]))
    without = [package["name"] for package in others if not package["license"] and not package["license_file"]]
    if without:
        sys.exit(f"packages without a licence: {', '.join(without)}")
    print(f"{len(others)} third-party packages are in the release.\n")
    texts = {}
    for package in others:
        print(f"{package['name']} {package['version']}: {package['license'] or package['license_file']}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")):
                text = file.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(f"{package['name']} {package['version']}: {file.name}")
    print("\nBesides: Rust's standard library (MIT OR Apache-2.0), musl in the static program (MIT), uPlot in reports (MIT).")
    for name, pattern in BUNDLED.items():
        for file in sorted(pathlib.Path(".").glob(pattern)):
            texts.setdefault(file.read_text(errors="replace").strip(), []).append(name)
    for text, names in texts.items():
        print("\n" + "-" * 100 + "\n" + "\n".join(names) + "\n\n" + text)


if __name__ == "__main__":
    main()
