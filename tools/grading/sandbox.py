# SPDX-License-Identifier: MIT
"""Runs a command with limits, in a sandbox of the distribution.

bubblewrap where it is installed: no network, no process but its own, nothing writable but memory, and
of the machine's files only those of the system. Where it is missing, namespaces by unshare(1), and
rlimits. Where even these are not allowed, rlimits alone; describe() says which.
"""
import ctypes
import functools
import glob
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

SYSTEM = [folder for folder in ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
          if os.path.exists(folder)]
# Above the users of any distribution: a limit on processes counts those of one user.
FIRST_UID = 61000


class Limits:
    """seconds of wall-clock time, cpu_seconds, memory_mb (address space; None: CUDA reserves more than there is) and
    processes of one command; file_mb: the largest file that it may write."""

    def __init__(self, seconds=60, cpu_seconds=60, memory_mb=4096, processes=32, file_mb=64):
        self.seconds, self.cpu_seconds, self.memory_mb = seconds, cpu_seconds, memory_mb
        self.processes, self.file_mb = processes, file_mb

    def as_options(self):
        """For prlimit(1), which sets them inside the sandbox: there processes are counted from zero."""
        memory = [f"--as={self.memory_mb << 20}"] if self.memory_mb else []
        return [f"--nproc={self.processes}", *memory, f"--cpu={self.cpu_seconds}", f"--fsize={self.file_mb << 20}",
                "--core=0", "--nofile=256"]


def bubblewrap(mounts, writable, devices=(), variables=()):
    """The start of a command line. `mounts`: (outside, inside), read-only but for the folder `writable`. `devices`: of
    /dev, beside the usual."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH",
               "/usr/bin:/bin", "--setenv", "LC_ALL", "C", "--tmpfs", "/tmp"]  # the book may be below it
    for outside, inside in mounts:
        command += ["--bind" if inside == writable else "--ro-bind", outside, inside]
    for name, value in variables:
        command += ["--setenv", name, value]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for device in devices:
        command += ["--dev-bind", device, device]
    return command + ["--remount-ro", "/", "--chdir", "/tmp"]


@functools.lru_cache
def others_reach(place):
    """Whether every user may enter the folders above: not those below root's own."""
    return all(parent.stat().st_mode & 0o001 for parent in pathlib.Path(place).resolve().parents)


def as_other_user(slot, reads=()):
    """As root, limits on processes do not hold: so another user runs what was submitted. Not a compiler that could not
    reach the book's headers then: `reads`."""
    if os.geteuid() != 0 or not shutil.which("setpriv") or not all(map(others_reach, reads)):
        return []
    uid = str(FIRST_UID + slot)
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs"]


def give_to_other_user(folder, slot, reads):
    """The folder and the files in it, to the user of a command that writes there and reads those places: back to root, if that
    is who runs it."""
    if os.geteuid() == 0:
        owner = FIRST_UID + slot if as_other_user(slot, reads) else 0
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner, owner, follow_symlinks=False)


# As text: the other user may not read the folder of the book.
UNSHARED = (pathlib.Path(__file__).parent / "unshared.sh").read_text()


def boxed(kind, folder, inside, limits, slot, writable=False, devices=(), variables=(), mounts=()):
    """The command `inside` in the box: it sees `folder` as /box, the folders of the system, and `mounts`, nothing
    else. Only /tmp, which is its own, may be written, and /box where it is `writable`."""
    inside = ["prlimit", *limits.as_options(), *inside]
    variables = list(variables)
    setting = [f"{name}={value}" for name, value in variables]
    if kind == "bubblewrap":
        places = [*((place, place) for place in [*SYSTEM, *mounts]), (str(folder), "/box")]
        return [*as_other_user(slot, mounts), *bubblewrap(places, "/box" if writable else "", devices, variables), *inside]
    if kind == "namespaces":
        root = folder / "root"
        root.mkdir(mode=0o755, exist_ok=True)
        return [*as_other_user(slot, mounts), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                "COOKBOOK_DEVICES=" + " ".join(device[len("/dev/"):] for device in devices),
                f"COOKBOOK_WRITABLE={int(writable)}", *setting, "unshare", "--user",
                "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--net", "--uts", "sh", "-c",
                UNSHARED, "sh", str(root), str(folder), "\n".join([*SYSTEM, *mounts]), *inside]
    inside = [str(folder) + part[len("/box"):] if f"{part}/".startswith("/box/") else part for part in inside]
    return [*as_other_user(slot, mounts), "env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", *setting, *inside]


def worker_command(kind, folder, limits, slot, devices=(), variables=(), mounts=()):
    """How to start the program `worker` of `folder`, which everyone can read."""
    return boxed(kind, folder, ["/box/worker"], limits, slot, False, devices, variables, mounts)


def gpu_worker_command(kind, folder, limits, slot):
    """The same, with the GPU in the sandbox."""
    devices = sorted(glob.glob("/dev/nvidia*")) + [place for place in ("/dev/dxg",) if os.path.exists(place)]
    names = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    variables = [("CUDA_CACHE_DISABLE", "1")] + [(name, os.environ[name]) for name in names if os.environ.get(name)]
    mounts = [place for place in ("/sys",) if os.path.isdir(place)]
    return worker_command(kind, folder, limits, slot, devices, variables, mounts)


def works(program, command_of):
    """Whether `program`, in the place of the worker, ends with 0."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        shutil.copy(program, folder / "worker")
        try:
            return subprocess.run(command_of(folder), capture_output=True, timeout=20).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def first_that_works(program, command_of):
    """"bubblewrap", "namespaces" or "limits": the best in which `program` ends with 0."""
    if wanted := os.environ.get("COOKBOOK_SANDBOX"):
        return wanted
    for kind in ("bubblewrap", "namespaces"):
        if works(program, functools.partial(command_of, kind)):
            return kind
    return "limits"


@functools.lru_cache
def kind_of_sandbox():
    return first_that_works("/bin/true", lambda kind, folder: worker_command(kind, folder, Limits(), 0))


@functools.lru_cache
def kind_of_gpu_sandbox(program):
    """The same for programs that use the GPU; `program --probe` ends with 0 where it can."""
    limits = Limits(memory_mb=None)
    return first_that_works(program, lambda kind, folder: [*gpu_worker_command(kind, folder, limits, 0), "--probe"])


def limited(command, seconds=60, memory_mb=4096, file_mb=256):
    """A command of the grader's own that reads what was submitted, such as objdump."""
    limits = Limits(cpu_seconds=seconds, memory_mb=memory_mb, processes=0, file_mb=file_mb)
    return ["prlimit", *(one for one in limits.as_options() if not one.startswith("--nproc")), *command]


KINDS = {"bubblewrap": "bubblewrap (no network, own processes, nothing writable but its memory)",
         "namespaces": "namespaces by unshare (no network, own processes, nothing writable but its memory)",
         "limits": "limits only: NO sandbox; what was submitted can read and write what you can"}
# (a setting below /proc/sys, its value that forbids the namespaces of ordinary users, what allows them)
FORBIDS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", [  # Ubuntu 24.04
        "sudo apt-get install bubblewrap apparmor-profiles",
        "sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/",
        "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"]),
    ("kernel/unprivileged_userns_clone", "0", ["sudo sysctl kernel.unprivileged_userns_clone=1"]),
    ("user/max_user_namespaces", "0", ["sudo sysctl user.max_user_namespaces=15000"]))


def setting(name, below=pathlib.Path("/proc/sys")):
    try:
        return (below / name).read_text().strip()
    except OSError:
        return ""


def no_sandbox():
    """Why nothing is graded, and the commands that change that."""
    todo = [line for name, value, lines in FORBIDS if setting(name) == value for line in lines]
    if not shutil.which("bwrap") and not any("bubblewrap" in line for line in todo):
        todo.insert(0, "sudo apt-get install bubblewrap")
    if not todo:
        todo = ["(apt-get install bubblewrap is done, and no setting of this system forbids namespaces: a container may, which is started",
                "with --security-opt seccomp=unconfined --security-opt apparmor=unconfined then)"]
    return "\n".join(["no sandbox works here, so nothing is graded. What allows one:", *(f"  {line}" for line in todo),
                      "docs/teaching.md says why. --no-sandbox grades without one: only submissions that you trust"])


def describe():
    return KINDS[kind_of_sandbox()]


class TooMuch(Exception):
    """A limit was reached; the message says which."""


RUNNING = set()  # what run() has started and not ended
ENDING = threading.Event()


def end_all():
    """Ends what run() has started, in whatever thread: nothing starts after this."""
    ENDING.set()
    for process in list(RUNNING):
        end_group(process)


def adopt():
    """What a command leaves behind becomes a child of this process, however it detaches itself."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def left_behind():
    """Ends what is left of the commands that run() has started, after the last one; how many there were."""
    found = 0
    for _ in range(1000):  # the children of those become children
        children = [int(pid) for task in pathlib.Path("/proc/self/task").glob("*/children")
                    for pid in task.read_text().split()]
        if not children:
            break
        for pid in children:
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    found += 1
            except OSError:
                pass
    return found


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, seconds, output_bytes=1 << 20, given=None, stderr=subprocess.STDOUT, **more):
    """Runs a command in a process group of its own, with the text `given` as its input; (exit status, what it wrote).
    Whatever it started is ended with it. Throws TooMuch after `seconds`, or when it writes more than `output_bytes`."""
    with tempfile.TemporaryFile() as text:
        text.write((given or "").encode())
        text.seek(0)
        process = subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
                                   **more)
    RUNNING.add(process)
    if ENDING.is_set():
        end_group(process)
    text, bytes_read, until = [], 0, time.monotonic() + seconds
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TooMuch(f"took more than {seconds} s")
            ready, _, _ = select.select([process.stdout], [], [], min(left, 1))
            if not ready:
                if process.poll() is not None:
                    break
                continue
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            text.append(piece)
            bytes_read += len(piece)
            if bytes_read > output_bytes:
                raise TooMuch(f"wrote more than {output_bytes >> 20} MiB")
        process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TooMuch(f"took more than {seconds} s") from None
    finally:
        end_group(process)
        process.wait()
        RUNNING.discard(process)
        process.stdout.close()
    return process.returncode, b"".join(text).decode(errors="replace")
