"""What kind of disk a folder lies on. A lake wants a local one: over a network, locks and syncs promise less."""

import os
from pathlib import Path
from typing import Final

NETWORK: Final = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
})  # fmt: skip
"""File systems of other machines, as Linux names them in /proc/self/mountinfo (proc_pid_mountinfo(5))."""


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The network file system that a folder lies on; None for a local disk, and where nobody can tell."""
    device = folder.stat().st_dev
    try:
        lines = mounts.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None  # not Linux
    return next((kind for kind in map(_kind, lines, [device] * len(lines)) if kind in NETWORK), None)


def _kind(mount: str, device: int) -> str:
    """The file system of a mount, when it is that of the device."""
    words = mount.split(" ")
    is_it = len(words) > 2 and words[2] == f"{os.major(device)}:{os.minor(device)}"
    return words[words.index("-") + 1] if is_it and "-" in words[:-1] else ""
