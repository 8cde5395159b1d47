"""Many files reach the disk by one call, and a failure is told of its own file alone."""

import errno
import os
import platform
import sys

import pytest

from discreet.service.storage import file_sync
from discreet.service.storage.file_sync import FileSync

TOGETHER = sys.platform == "linux" and platform.machine() in file_sync._NUMBERS


@pytest.fixture
def files(tmp_path):
    opened = [os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR) for number in range(600)]
    for file in opened:
        os.write(file, b"written")
    yield opened
    for file in opened:
        os.close(file)


@pytest.fixture(params=[True, False], ids=["together", "one by one"])
def disk(request):
    made = FileSync(together=request.param)
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 2, 256, 257, 600])
def test_every_file_is_answered(disk, files, count):
    for _ in range(2):
        assert disk.sync(files[:count]) == [None] * count


def test_each_file_has_its_own_error(disk, files):
    reads, writes = os.pipe()  # a pipe cannot be synced
    closed = os.dup(files[0])
    os.close(closed)
    found = disk.sync([files[0], reads, files[1], closed, files[2]])
    os.close(reads)
    os.close(writes)
    assert [each and each.errno for each in found] == [None, errno.EINVAL, None, errno.EBADF, None]
    assert disk.sync(files[:3]) == [None] * 3


def test_several_files_are_one_call(files, monkeypatch):
    disk, alone = FileSync(), []
    monkeypatch.setattr(file_sync, "_to_disk", alone.append)
    assert disk.sync(files[:40]) == [None] * 40
    assert alone == ([] if TOGETHER else files[:40])
    disk.close()


def test_a_machine_that_takes_one_at_a_time(files, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    disk, alone = FileSync(), []
    monkeypatch.setattr(file_sync, "_to_disk", alone.append)
    assert disk.sync(files[:3]) == [None] * 3
    assert alone == files[:3]
