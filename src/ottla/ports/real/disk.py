"""Files of this machine.

A file keeps its own end, because an append is the broker's hottest system call: `pwritev` at a known position needs
neither `O_APPEND` nor a seek nor a `stat`. The end is this handle's: a file has one writer. A handle that only reads
asks the system for the size each time, for the file may grow under it.

Nothing is retried after a fault: the caller knows what the size was and what may be lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock as Mutex
from typing import Final

from ottla.ports.disk import Buffer, File

#: Linux and the BSDs take 1024 buffers a call; POSIX promises only 16.
IOV_MAX: Final = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 16
#: The portable `allocate` writes zeros in pieces of this size.
ZEROS: Final = bytes(64 * 1024)
#: Only Linux can read what is in memory and nothing else.
_NO_WAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
#: Leases are taken on the loop and may be given back by a worker. Held for some 50 ns, so that one serves all files.
_LEASES: Final = Mutex()
#: How many files were closed under leases. Of the whole process, as descriptors are.
_LINGERING: Final = [0]


#: Linux's numbers of the calls that read and set a folder's flags, and of the flag that ext4 calls `topdir`.
_LONG: Final = (sys.maxsize.bit_length() + 1) // 8
_GET_FLAGS: Final = 0x80006601 | _LONG << 16
_SET_FLAGS: Final = 0x40006602 | _LONG << 16
_TOPDIR: Final = 0x20000


class RealFile:
    """A descriptor and the end of what this handle has written."""

    __slots__ = ("_closing", "_end", "_fd", "_leases", "_path", "_writable")

    def __init__(self, path: str, flags: int) -> None:
        self._path = path
        self._fd, self._end = _open_file(path, flags)
        self._writable = flags & os.O_RDWR != 0
        self._leases = 0
        self._closing = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._path!r} fd={self._fd}>"

    @property
    def path(self) -> str:
        return self._path

    def append(self, buffers: Sequence[Buffer]) -> int:
        end = self._end if self._writable else self._refuse()
        if len(buffers) == 1:
            total = len(buffers[0])
            written = os.pwrite(self._fd, buffers[0], end)
        else:
            total = sum(map(len, buffers))
            written = self._write_vector(buffers, end)
        self._end = end + written
        if written != total:
            self._append_rest(buffers, written)
        return total

    def _write_vector(self, buffers: Sequence[Buffer], position: int) -> int:
        return os.pwritev(self._fd, buffers if len(buffers) <= IOV_MAX else buffers[:IOV_MAX], position)

    def _append_rest(self, buffers: Sequence[Buffer], done: int) -> None:
        """Goes on after a short write: more buffers than one call takes, over 2 GiB, or a disk that has just filled."""
        for buffer in buffers:
            if done >= len(buffer):
                done -= len(buffer)
                continue
            view = memoryview(buffer)[done:]
            done = 0
            while view:
                written = os.pwrite(self._fd, view, self._end)
                self._end += written
                view = view[written:]

    def read(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        # Short: the end of the file, or (network file systems, over 2 GiB) merely a short answer.
        pieces = [data]
        position += len(data)
        size -= len(data)
        while size > 0 and (data := os.pread(self._fd, size, position)):
            pieces.append(data)
            position += len(data)
            size -= len(data)
        return b"".join(pieces)

    def read_into(self, view: memoryview, position: int) -> int:
        size = len(view)
        done = os.preadv(self._fd, (view,), position)
        while 0 < done < size:
            got = os.preadv(self._fd, (view[done:],), position + done)
            if got == 0:
                break
            done += got
        return done

    def is_cold(self, size: int, position: int) -> bool:
        # Looks at the first and the last page only: the kernel reads ahead in between.
        for at in (position, position + size - 1):
            try:
                os.preadv(self._fd, (bytearray(1),), at, _NO_WAIT)
            except BlockingIOError:
                return True
            except OSError:
                return False  # a file system that cannot say
        return False

    def write(self, data: Buffer, position: int) -> None:
        if not self._writable:
            self._refuse()
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, position)
            position += written
            self._end = max(self._end, position)
            view = view[written:]

    def size(self) -> int:
        if self._writable and self._fd >= 0:
            return self._end
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        if not self._writable:
            self._refuse()
        os.ftruncate(self._fd, size)
        self._end = size

    def allocate(self, size: int) -> None:
        if not self._writable:
            self._refuse()
        if size > self._end:
            os.posix_fallocate(self._fd, self._end, size - self._end)
            self._end = size

    def sync(self) -> None:
        # The size is flushed with the data; only times are not, and nobody restores those.
        os.fdatasync(self._open_fd())

    def fileno(self) -> int:
        return self._fd

    def lease(self) -> None:
        with _LEASES:
            assert self._fd >= 0
            self._leases += 1

    def release(self) -> None:
        with _LEASES:
            assert self._leases > 0
            self._leases -= 1
            last = self._closing and self._leases == 0
            _LINGERING[0] -= last
        if last:
            self._close_now()

    def close(self) -> None:
        with _LEASES:
            if self._closing:
                return
            self._closing = True
            last = self._leases == 0
            _LINGERING[0] += not last
        if last:
            self._close_now()

    def _close_now(self) -> None:
        fd, self._fd = self._fd, -1  # code that still uses it gets EBADF, never another file's bytes
        os.close(fd)

    def _open_fd(self) -> int:
        # fsync answers -1 with a ValueError before the system is asked.
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
        return self._fd

    def _refuse(self) -> int:
        raise OSError(errno.EBADF, "opened for reading only", self._path)


def _open_file(path: str, flags: int) -> tuple[int, int]:
    """Descriptor and size of a regular file; whatever else has this name is refused.

    Without O_NONBLOCK a named pipe that nobody writes to would be waited for. To a file it means nothing.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return fd, status.st_size
    os.close(fd)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.ENXIO, "it is no file", path)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError as error:
        # A symbolic link that leads to itself, or to where nobody may look.
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EACCES}:
            return False
        raise


class PortableFile(RealFile):
    """The same without pwritev, preadv, fdatasync and fallocate."""

    __slots__ = ()

    def _write_vector(self, buffers: Sequence[Buffer], position: int) -> int:
        return os.pwrite(self._fd, b"".join(buffers), position)

    def read_into(self, view: memoryview, position: int) -> int:
        data = self.read(len(view), position)
        view[: len(data)] = data
        return len(data)

    def allocate(self, size: int) -> None:
        if not self._writable:
            self._refuse()
        while self._end < size:
            self.append([ZEROS[: size - self._end]])

    def sync(self) -> None:
        if sys.platform == "darwin":
            # There fsync leaves the data in the drive's own cache.
            fcntl.fcntl(self._open_fd(), fcntl.F_FULLFSYNC)
        else:
            os.fsync(self._open_fd())


class RealLock:
    """A lock file that is held. The system lets go of it when the process ends, however that happens."""

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Not lockf: that one belongs to the process, and a second taker in it would succeed.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._fd)
            raise

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class RealDisk:
    __slots__ = ("_file", "_has_flags")

    def __init__(self, *, portable: bool = False) -> None:
        self._file = PortableFile if portable else RealFile
        self._has_flags = not portable and sys.platform == "linux"

    @property
    def lingering(self) -> int:
        return _LINGERING[0]

    def open(self, path: str, *, create: bool = False) -> File:
        return self._file(path, os.O_RDWR | os.O_CREAT if create else os.O_RDWR)

    def open_read_only(self, path: str) -> File:
        return self._file(path, os.O_RDONLY)

    def read_file(self, path: str) -> bytes:
        fd, _ = _open_file(path, os.O_RDONLY)
        with open(fd, "rb", buffering=0) as file:
            return file.readall()

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def entries(self, directory: str) -> list[tuple[str, bool]]:
        with os.scandir(directory) as found:
            return sorted((entry.name, _is_file(entry)) for entry in found)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_directory(self, path: str) -> bool:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            return False
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)
        return True

    def spread_folders(self, path: str) -> None:
        """ext4 makes folders beside their parent, and looks in that group of inodes past each that was freed within the
        last minutes: 1,000 new logs, where many were removed a moment ago, took 2.1 s of the kernel and take 0.2
        (docs/decisions/spread-folders.md)."""
        if not self._has_flags:
            return
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # An int, though the calls' numbers speak of a long.
                flags = array("i", [0, 0])
                fcntl.ioctl(fd, _GET_FLAGS, flags)
                if not flags[0] & _TOPDIR:
                    flags[0] |= _TOPDIR
                    fcntl.ioctl(fd, _SET_FLAGS, flags)
            finally:
                os.close(fd)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        import shutil

        if os.path.islink(path):
            os.unlink(path)  # what it leads to is somebody else's, as for Kafka
        else:
            shutil.rmtree(path)

    def remove_files(self, folder: str) -> None:
        if os.path.islink(folder):
            return
        with os.scandir(folder) as found:
            files = [entry.path for entry in found if not entry.is_dir(follow_symlinks=False)]
        for file in files:
            os.unlink(file)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        system = os.statvfs(path)
        return system.f_bavail * system.f_frsize

    def total_bytes(self, path: str) -> int:
        system = os.statvfs(path)
        return system.f_blocks * system.f_frsize

    def lock(self, path: str) -> RealLock:
        return RealLock(path)
