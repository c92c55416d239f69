"""The manifests of docs/examples: checked against their schemas, and run as their container runtime would, in namespaces of this machine.

manifest.py check COMPOSE_SCHEMA                     checks both
manifest.py run compose|kubernetes PAGEOUT GROUP INTO   records GROUP for a second, into the folder INTO
"""

import json, os, re, subprocess, sys, tempfile

import yaml

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../docs/examples")


def manifest(kind):
    with open(f"{EXAMPLES}/record.{kind}.yaml") as file:
        return yaml.safe_load(file)


def check(schema):
    import jsonschema, kubernetes_validate

    with open(schema) as file:
        jsonschema.validate(manifest("compose"), json.load(file))
    kubernetes_validate.validate(manifest("kubernetes"), kubernetes_validate.latest_version(), strict=True)
    # A check that can't fail is none: an unknown key has to be rejected by both.
    wrong = manifest("compose")
    wrong["services"]["record"]["pidd"] = "host"
    try:
        jsonschema.validate(wrong, json.load(open(schema)))
        sys.exit("the schema of Compose accepts an unknown key")
    except jsonschema.ValidationError:
        pass
    wrong = manifest("kubernetes")
    wrong["spec"]["template"]["spec"]["hostPIDs"] = True
    try:
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)
        sys.exit("the schema of Kubernetes accepts an unknown key")
    except kubernetes_validate.ValidationError:
        pass
    print(f"manifests: valid (Compose specification; Kubernetes {kubernetes_validate.latest_version()})")


def container(kind):
    """Arguments, whether it has the host's processes, and its mounts: from, to, read-only."""
    if kind == "compose":
        service = manifest(kind)["services"]["record"]
        volumes = [(volume.split(":") + ["rw"])[:3] for volume in service["volumes"]]
        mounts = [(source, to, mode == "ro") for source, to, mode in volumes]
        return service["command"], service.get("pid") == "host", mounts
    pod = manifest(kind)["spec"]["template"]["spec"]
    (of,) = pod["containers"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    mounts = [(paths[at["name"]], at["mountPath"], at.get("readOnly", False)) for at in of["volumeMounts"]]
    return of["args"], pod.get("hostPID", False), mounts


def run(kind, pageout, group, into):
    arguments, has_host_pids, mounts = container(kind)
    arguments = [re.sub(r"^\$\{GROUP\}$|^GROUP$", group, word).replace("60s", "1s") for word in arguments]
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["cp", pageout, f"{root}/pageout"], check=True)
        lines = ["set -e", "mount --make-rprivate /", f"mkdir {root}/proc", f"mount -t proc proc {root}/proc"]
        for source, to, is_read_only in mounts:
            source = into if to == "/rec" else source
            lines += [f"mkdir -p {root}{to}", f"mount --rbind {source} {root}{to}"]
            lines += [f"mount -o remount,bind,ro {root}{to}"] if is_read_only else []
        lines.append(f"exec chroot {root} /pageout " + " ".join(f"'{word}'" for word in arguments))
        namespaces = ["--mount"] + ([] if has_host_pids else ["--pid", "--fork"])
        ran = subprocess.run(["unshare", *namespaces, "sh", "-c", "\n".join(lines)])
    sys.exit(ran.returncode)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    check(*rest) if what == "check" else run(*rest)
