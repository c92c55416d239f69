"""Prints a bill of materials of the release: CycloneDX 1.6, as JSON.

Usage: ci/figures/bom.py, in a checkout. Its parts are the program, the wheel and the C library; below them are all packages with licence and checksum.
The same sources print the same bytes.
"""

import json, pathlib, re, subprocess, tomllib, uuid
from datetime import datetime, timezone

from licences import RELEASED, packages

#: The chart library, whose version is in its first line.
UPLOT = pathlib.Path("crates/lab/src/report/assets/uPlot.iife.min.js")


def checksums():
    """SHA-256 of each package by name and version, as the lock file has it."""
    locked = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in locked["package"]}


def licence(package):
    """An SPDX expression; old packages separate licences by a slash."""
    return [{"expression": package["license"].replace("/", " OR ")}] if package["license"] else [{"license": {"name": package["license_file"]}}]


def name_of(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def component(package, sums):
    made = {"type": "library", "bom-ref": name_of(package), "name": package["name"], "version": package["version"]}
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    checksum = sums[package["name"], package["version"]]
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return made | {"licenses": licence(package), "purl": name_of(package)}


def bundled():
    """What files of the release contain besides packages of Cargo."""
    rust = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[1]
    uplot = re.search(r"uPlot \(v([0-9.]+)\)", UPLOT.read_text()[:200]).group(1)
    return [
        {"type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": rust, "description": "Rust's standard library", "licenses": [{"expression": "MIT OR Apache-2.0"}]},
        {"type": "library", "bom-ref": "musl", "name": "musl", "description": "C library of the static program", "licenses": [{"expression": "MIT"}], "purl": "pkg:generic/musl"},
        {"type": "library", "bom-ref": "uplot", "name": "uplot", "version": uplot, "description": "Charts of reports and of the page of `play`", "licenses": [{"expression": "MIT"}], "purl": f"pkg:npm/uplot@{uplot}"},
    ]


def main():
    used, needs = packages()
    sums = checksums()
    version = next(package["version"] for package in used.values() if package["name"] in RELEASED)
    committed = subprocess.run(["git", "log", "-1", "--format=%ct"], stdout=subprocess.PIPE, check=True, text=True).stdout
    released = sorted(name_of(package) for package in used.values() if package["name"] in RELEASED)
    below = {name_of(package): sorted({name_of(used[other]) for other in needs[id]}) for id, package in used.items()}
    for part in released:
        below[part].append("rust-std")
    for package in used.values():
        if package["name"] == "pageout-lab":
            below[name_of(package)] += ["musl", "uplot"]
    components = sorted((component(package, sums) for package in used.values()), key=lambda made: made["bom-ref"]) + bundled()
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(committed), timezone.utc).isoformat(),
            "component": {"type": "application", "bom-ref": "pageout", "name": "pageout", "version": version, "licenses": [{"expression": "MIT OR Apache-2.0"}]},
        },
        "components": components,
        "dependencies": [{"ref": "pageout", "dependsOn": released}] + [{"ref": ref, "dependsOn": others} for ref, others in sorted(below.items())],
    }
    made["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))}"
    known = {one["bom-ref"] for one in components}
    for ref, others in below.items():
        missing = [other for other in [ref, *others] if other not in known]
        assert not missing, f"{ref}: found dependencies {missing} without a component"
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
