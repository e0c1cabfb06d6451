"""Where a lake may lie."""

import os

import pytest

from data.errors import BadInput
from data.store.files import NETWORK, network_file_system
from data.store.lake import Lake


def mount(kind, device):
    return (
        f"36 35 {os.major(device)}:{os.minor(device)} / /mnt/a\\040b rw,noatime shared:1 - {kind} server:/export rw\n"
    )


def test_a_folder_of_another_machine_is_told_and_a_local_one_is_fine_beside_it(tmp_path):
    here, mounts = tmp_path.stat().st_dev, tmp_path / "mountinfo"
    for kind in sorted(NETWORK):
        mounts.write_text(mount("ext4", here + 1) + mount(kind, here))
        assert network_file_system(tmp_path, mounts) == kind
    for kind in ("ext4", "xfs", "btrfs", "overlay", "tmpfs"):
        mounts.write_text(mount(kind, here) + mount("nfs4", here + 1) + "short\n")
        assert network_file_system(tmp_path, mounts) is None, kind


def test_a_lake_is_allowed_where_the_file_system_is_unknown(tmp_path):
    assert network_file_system(tmp_path, tmp_path / "nowhere") is None
    assert network_file_system(tmp_path) is None


def test_a_lake_over_a_network_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("data.store.lake.network_file_system", lambda folder: "nfs4")
    with pytest.raises(BadInput, match=r"^the lake cannot be at \S+: nfs4 is a network file system.*local disk\.$"):
        Lake(tmp_path / "lake", create=True)
    assert not (tmp_path / "lake" / "manifest.sqlite").exists()
