"""What a training program in Python says to savegate: one JSON line an event, one mark a phase.

    import savegate_hook

    hook = savegate_hook.Hook()                       # without SAVEGATE_EVENTS every call is a no-op
    with hook.loading() as loading:                   # an exception is told, and passes through
        loading.path = newest()
        if loading.path:
            step = restore(loading.path, state)       # the program's own
            loading.restored(step, state, save=step // 10)
    while step < last:
        step += 1
        hook.update(step, samples=[(first, last)], changed=True)
        if step % 10 == 0:
            with hook.saving(step, state, save=step // 10) as saving:
                save(state)                           # the program's own; an exception passes through
            if hook.until_reached(saving.save):
                break
    hook.done()

One file, the standard library, Python 3.9 or later: copy it beside the program, or install its wheel.
docs/subject-contract.md says what the events mean.

A state is a tensor of PyTorch (sharded ones too), an array of NumPy or JAX, bytes, text, a number,
or containers of these; names of nested values are joined by dots. Digests are computed by
libsavegate_worker.so where it is found, on the GPU for what lies there, else by the `xxhash`
package, else in Python, about 1000 times slower.

An instrument must not change what the program does. What fails in here is said once on stderr and
in a `hook_error` event, which makes the run INVALID, and the program goes on. Threads and signal
handlers may share a Hook; a child process may use the Hook that it inherited, and its lines say whose
they are.
"""

import ctypes
import errno
import functools
import gc
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
import threading
import time
import traceback

CONTRACT = 1

KINDS = ("parameter", "optimizer", "scheduler", "rng", "counter", "contract", "derived")

# The kind of what lies below a name, where the program does not say it.
_USUAL_KINDS = {
    "model": "parameter", "module": "parameter", "parameters": "parameter", "weights": "parameter",
    "optim": "optimizer", "optimizers": "optimizer", "optimizer_state_dict": "optimizer",
    "scheduler": "scheduler", "lr_scheduler": "scheduler", "schedulers": "scheduler",
    "rng": "rng", "rng_state": "rng", "random": "rng",
    "counters": "counter", "step": "counter", "epoch": "counter", "data": "counter",
    "config": "contract", "args": "contract",
}
_USUAL_KINDS.update({kind: kind for kind in KINDS})

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2", "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0",
    "complex128": "c128", "complex64": "c64", "complex32": "c32",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
}


_said_hello = {}  # by event file: the process; a child inherits this


class Shard:
    """A slice of a global tensor, for values that do not say so themselves."""

    def __init__(self, value, global_shape, offset):
        self.value, self.global_shape, self.offset = value, global_shape, offset


class Items(list):
    """What Hook.items() gives: items as the events write them."""


def _guarded(call, always=False):
    """What fails in the call is told, and is no matter of the program's."""

    @functools.wraps(call)
    def guarded(self, *arguments, **named):
        if not self.enabled and not always:
            return None
        try:
            return call(self, *arguments, **named)
        except Exception as error:
            self._failed(call.__name__.lstrip("_"), error)
            if _is_of_a_signal_handler(error):
                raise
            return None

    return guarded


def _is_of_a_signal_handler(error):
    """Whether the program's handler raised it, as one does that limits a save's time: it is the program's."""
    handlers = [getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


_counting = functools.partial(_guarded, always=True)  # saves are counted where no run is on, too


class Hook:
    def __init__(self, versions=None, kinds=None, scopes=None):
        """`kinds` and `scopes` map names, or what they begin with up to a dot, to their words. A
        value that knows its own place, as a slice does, has the scope that follows from it."""
        self.rank = _integer(("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"), 0)
        self.world = _integer(("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"), 1)
        self.life = _integer(("SAVEGATE_LIFE",), 1)
        self.device = os.environ.get("SAVEGATE_DEVICE", "cpu")
        self.directory = os.environ.get("SAVEGATE_DIR", ".")
        self.rendezvous = os.environ.get("SAVEGATE_RENDEZVOUS", "")
        self.enabled = False
        self._kinds, self._scopes = {}, {}
        self._control = os.environ.get("SAVEGATE_CONTROL", "")
        self._marks = threading.local()  # a thread waits for its own marks alone
        self._loading = False
        self._last_save = 0  # N of the newest `save N`; None where nobody said
        self._attempts = {}  # by step
        self._collectives = {}  # by communicator
        self._gpu_peak = None
        self._own_process = self._process = os.getpid()
        if _is_child_of_multiprocessing():
            self._own_process = None  # of the rank, and not the one that said hello
        self._path = path = os.environ.get("SAVEGATE_EVENTS", "")
        if not path:
            return
        try:
            self._events = _open_to_append(path)
            self._events_identity = _identity(self._events)
        except OSError as error:
            self._lose_events(error)
            return
        self.enabled = True
        if path in _said_hello:
            self._own_process = _said_hello[path]  # this one, or the one that forked it
        elif self._own_process is not None:
            _said_hello[path] = self._own_process
            self._hello(versions)
        self._set_words(kinds, scopes)

    @_guarded
    def _set_words(self, kinds, scopes):
        self._kinds, self._scopes = dict(kinds or {}), dict(scopes or {})

    # -- events ---------------------------------------------------------------------------------

    @_guarded
    def _hello(self, versions):
        known = {"python": "%d.%d.%d" % sys.version_info[:3], "hook": _digests().name}
        for name in ("torch", "numpy", "jax"):
            if name in sys.modules:
                known[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
        known.update((str(name), str(version)) for name, version in dict(versions or {}).items())
        self._append("hello", contract=CONTRACT, world=self.world, pid=os.getpid(),
                     device=self.device, versions=known)

    @_guarded
    def load_begin(self):
        self._loading = True
        self._mark("enter", "load")

    def loading(self):
        """Around the restore: `with hook.loading() as loading:`. See Loading."""
        return Loading(self)

    def resumed(self, step, items=None, path=None, error=None, save=None):
        """After the restore, before the first step. `step` None: nothing was restored; `error`: the
        exception with which the load was refused; `save`: the N of the `save N` that was restored."""
        self._count_from(step, save)
        self._resumed(step, items, path, error)

    @_counting
    def _count_from(self, step, save):
        self._last_save = _whole(save) if save is not None else None if step else 0

    @_guarded
    def _resumed(self, step, items, path, error):
        told = {} if items is None else {"items": self._told_items(items)}
        if path is not None:
            told["path"] = self._below(path)
        if error is not None:
            told = {"path": told["path"]} if "path" in told else {}
            told["error"] = self._told_error(error)
        if self._loading:
            self._loading = False
            self._mark("leave", "load")
        self._append("resumed", step=None if step is None or error is not None else _whole(step),
                     ok=error is None, **told)

    @_guarded
    def update(self, step, samples=None, changed=True):
        ranges = [] if samples is None else [[_whole(a), _whole(b)] for a, b in samples]
        told = {"samples": ranges} if ranges else {}
        self._append("update", step=_whole(step), changed=bool(changed), **told)

    def saving(self, step, state, save=None, asynchronous=False):
        """Around the save call: `with hook.saving(...) as saving:`. `state` as of the call."""
        return Saving(self, step, state, self._number_of(save), asynchronous)

    @_counting
    def _number_of(self, save):
        if save is not None:
            self._last_save = _whole(save)
        elif self._last_save is not None:
            self._last_save += 1
        return self._last_save

    @_guarded
    def _save_begin(self, step, save, state):
        if save is None:
            raise ValueError("saving() needs save=N: resumed() did not say which save was restored")
        step = _whole(step)
        self._attempts[step] = self._attempts.get(step, 0) + 1
        self._append("save_begin", step=step, save=save, items=self._told_items(state),
                     **self._attempt(step))
        self._mark("enter", "save %d" % save)

    @_guarded
    def _save_told(self, event, step, save, error, leave):
        told = {} if error is None else {"error": self._told_error(error)}
        step = _whole(step)
        if leave:
            self._mark("leave", "save %d" % save)
        self._append(event, step=step, save=save, ok=error is None, **self._attempt(step), **told)

    @_guarded
    def exported(self, step, derived):
        """Derived weights were exported: their bytes, or an array or tensor of them."""
        item, = _digested({"export": derived}, self._kinds, self._scopes)
        self._append("export", step=_whole(step), digest=item["digest"])

    @_guarded
    def memory(self, name, step=None, **facts):
        """After "save", "load", "export" or "update", or as "before save" and so on. `facts`: what
        the program itself knows, such as host_staging=bytes."""
        told = {} if step is None else {"step": _whole(step)}
        facts = {fact: None if value is None else _whole(value) for fact, value in facts.items()}
        self._append("memory", name=str(name), memory={**self._memory_facts(), **facts}, **told)

    def collective(self, kind, communicator="world"):
        """Around a collective: `with hook.collective("all_gather"):`."""
        return _Collective(self, self._collective(kind, communicator))

    @_guarded
    def _collective(self, kind, communicator):
        kind, communicator = str(kind), str(communicator)
        number = self._collectives[communicator] = self._collectives.get(communicator, 0) + 1
        return kind, communicator, number

    @_guarded
    def _collective_enter(self, kind, communicator, number):
        self._append("collective_enter", name=communicator, number=number, collective=kind)
        self._mark("collective_enter", "%s#%d %s" % (communicator, number, kind))

    @_guarded
    def _collective_exit(self, kind, communicator, number):
        self._mark("collective_exit", "%s#%d %s" % (communicator, number, kind))
        self._append("collective_exit", name=communicator, number=number, collective=kind)

    @_guarded
    def phase(self, name):
        self._append("phase", name=str(name))
        self._mark("point", str(name))

    @_guarded
    def done(self):
        """The last call: the program leaves with exit status 0 after it."""
        self._append("done")

    def until_reached(self, save=None):
        """Whether this life may end: the save that SAVEGATE_UNTIL asks for is durable."""
        return bool(self._until_reached(save))

    @_counting
    def _until_reached(self, save):
        words = os.environ.get("SAVEGATE_UNTIL", "").split()
        save = self._last_save if save is None else _whole(save)
        return len(words) == 2 and words[0] == "save" and save is not None and save >= int(words[1])

    # -- items ----------------------------------------------------------------------------------

    def items(self, state):
        """The state's items with their digests; empty where no run is on, and where it cannot be
        digested, which is told."""
        return self._items(state) or Items()

    @_guarded
    def _items(self, state):
        return _digested(state, self._kinds, self._scopes)

    def _told_items(self, state):
        return state if isinstance(state, Items) else self.items(state)

    # -- what the events hold -------------------------------------------------------------------

    def _attempt(self, step):
        attempt = self._attempts.get(step, 1)
        return {"attempt": attempt} if attempt > 1 else {}

    def _below(self, path):
        return _relative(path, self.directory)

    def _told_error(self, error):
        """Of the exceptions that led to one another the text of all, and what the first one knows."""
        if not isinstance(error, BaseException):
            return {"text": str(error)}
        told, texts, seen = {}, [], set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            texts.append("".join(traceback.format_exception_only(type(error), error)).strip())
            if isinstance(error, OSError) and error.errno in errno.errorcode:
                told["errno_name"] = errno.errorcode[error.errno]
                if isinstance(error.filename, (str, bytes, os.PathLike)):
                    told["path"] = self._below(error.filename)
            for field in ("rank", "offset", "requested", "returned"):
                if type(vars(error).get(field)) is int:
                    told[field] = vars(error)[field]
            error, rank = _cause_of(error)
            if rank is not None:
                told["rank"] = rank
        text = " <- ".join(" ".join(each.split()) for each in texts)
        return dict({"text": text[:4000]}, **told)

    def _memory_facts(self):
        facts = {"host_rss": None, "host_rss_peak": None, "threads": None, "open_files": None}
        try:
            with open("/proc/self/statm") as statm:
                facts["host_rss"] = int(statm.read().split()[1]) * resource.getpagesize()
            facts["threads"] = len(os.listdir("/proc/self/task"))
            facts["open_files"] = len(os.listdir("/proc/self/fd")) - 1  # but for the listing's own
        except OSError:
            pass  # not obtained
        facts["host_rss_peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if self.device != "cpu" and cuda is not None and cuda.is_initialized():
            facts["gpu_allocated"] = cuda.memory_allocated()
            facts["gpu_reserved"] = cuda.memory_reserved()
            # PyTorch's peak is the program's own to reset: what was reached since the event before
            # is known where it is a new one.
            peak = cuda.max_memory_reserved()
            facts["gpu_reserved_peak"] = peak if self._gpu_peak is None or peak > self._gpu_peak else None
            self._gpu_peak = peak
            facts["gpu_free"] = cuda.mem_get_info()[0]
        return facts

    # -- lines out ------------------------------------------------------------------------------

    def _append(self, event, **fields):
        process = os.getpid()
        line = {"event": event, "time_ns": time.monotonic_ns(), "rank": self.rank}
        if process != self._own_process:
            line["pid"] = process
        line.update(fields)
        data = _json_text(line).encode() + b"\n"
        if _identity(self._events) != self._events_identity:  # its number may be a checkpoint's now
            raise OSError(errno.EBADF, "the program closed the descriptor of its events")
        if os.write(self._events, data) != len(data):  # one write: lines never mix
            self._lose_events("a line was written in part")

    def _mark(self, kind, name):
        """Waits until the daemon has answered, as long as a rule holds the rank here."""
        if not self._control:
            return
        if self._process != os.getpid():
            self._process, self._marks = os.getpid(), threading.local()  # the parent's are its own
        try:
            # Out of `idle` while it waits: a signal handler that sends a mark meanwhile takes another
            # line, and the answer to one that an exception ended goes with its line.
            idle = self._marks.__dict__.setdefault("idle", [])
            line = idle.pop() if idle else _ControlLine(self._control)
            line.request({"cmd": "mark", "rank": self.rank, "kind": kind, "name": name})
            idle.append(line)
        except (OSError, ValueError) as error:
            if _is_of_a_signal_handler(error):
                raise
            self._control = ""
            _say("marks end here: %s" % error)

    def _failed(self, call, error):
        if not self.enabled:
            return
        text = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
        _say("%s: %s" % (call, text))
        try:
            self._append("hook_error", name=call, error={"text": text[:4000]})
        except Exception as second:  # the events cannot be written: nothing more is judged
            self._lose_events(second)

    def _lose_events(self, reason):
        """Told in the log and by a file: the program may have put its stderr elsewhere."""
        self.enabled = False
        _say("events lost: %s" % reason)
        try:
            lost = _open_to_append(self._path + ".lost")
            try:
                os.write(lost, _text_bytes("%s\n" % reason))
            finally:
                os.close(lost)
        except OSError as error:
            _say("%s.lost: %s" % (self._path, error))


class Loading:
    """The restore of Hook.loading(): where `restored` is not called, nothing was there to restore."""

    def __init__(self, hook):
        self.path = None  # of the checkpoint, once the program has chosen it
        self._hook, self._told = hook, False

    def __enter__(self):
        self._hook.load_begin()
        return self

    def restored(self, step, state, save=None):
        """The state is that of the checkpoint; `save` is the N of the `save N` that it came from."""
        self._told = True
        self._hook.resumed(step, items=state, path=self.path, save=save)

    def __exit__(self, kind, error, trace):
        if not self._told:
            self._hook.resumed(None, path=self.path, error=error)
        return False


class Saving:
    """One save of Hook.saving(). `save` is its number."""

    def __init__(self, hook, step, state, save, asynchronous):
        self.save = save
        self._hook, self._step, self._state, self._asynchronous = hook, step, state, asynchronous

    def __enter__(self):
        self._hook._save_begin(self._step, self.save, self._state)
        self._state = None
        return self

    def __exit__(self, kind, error, trace):
        failed = error is not None
        self._hook._save_told("save_end", self._step, self.save, error, leave=failed)
        if not failed and not self._asynchronous:
            self.durable()
        return False

    def durable(self, error=None):
        """The asynchronous save is complete, or has failed with `error`; from any thread."""
        self._hook._save_told("durable", self._step, self.save, error, leave=True)


class _Collective:
    def __init__(self, hook, what):
        self._hook, self._what = hook, what  # None where it could not be told, or is not to be

    def __enter__(self):
        if self._what is not None:
            self._hook._collective_enter(*self._what)

    def __exit__(self, kind, error, trace):
        if self._what is not None and error is None:  # one that failed was never left
            self._hook._collective_exit(*self._what)
        return False


class _ControlLine:
    """A connection to the daemon: a request line out, its reply line in."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)

    def __del__(self):
        self._socket.close()

    def request(self, request):
        self._socket.sendall(_json_text(request).encode() + b"\n")
        reply = b""
        while not reply.endswith(b"\n"):
            part = self._socket.recv(4096)
            if not part:
                raise ConnectionError("the daemon hung up")
            reply += part
        if not json.loads(reply).get("ok"):
            raise ConnectionError("the daemon answered %r" % reply)


def print_checkpoint(path, step, load, announced=True):
    """What a subject's reader says of a checkpoint directory, on standard output. `load()` gives pairs
    (rank that saved it, its state); an exception of its says why the checkpoint is not complete. A
    state that cannot be digested says nothing of the checkpoint: the reader fails."""
    line = {"path": _relative(path, os.environ.get("SAVEGATE_DIR", ".")), "step": int(step),
            "complete": True, "announced": bool(announced), "error": "", "items": []}
    for rank, state in _loaded(load, line):
        line["items"] += [[_whole(rank), item] for item in _digested(state, {}, {})]
    if not line["complete"]:
        line["items"] = []
    print(_json_text(line))


def _loaded(load, line):
    try:
        for rank, state in load():
            yield rank, state
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # not every framework's is an Exception
        line.update(complete=False, error="%s: %s" % (type(error).__name__, error))


def _json_text(value):
    """Names of files may hold what is no text, which no reader of JSON takes."""
    return _text_bytes(json.dumps(value, separators=(",", ":"), ensure_ascii=False,
                                  allow_nan=False)).decode()


def _text_bytes(text):
    return text.encode("utf-8", "replace")


def _open_to_append(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _identity(descriptor):
    """What lies behind a descriptor; the program may have closed it, and opened a file that has its number."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)


_stderr = _identity(2)


def _say(text):
    """On descriptor 2, whatever became of sys.stderr. A file that the program opened after it closed
    that one may be a checkpoint."""
    here = _identity(2)
    if here is None or here != _stderr and stat.S_ISREG(here[2]):
        return
    try:
        os.write(2, _text_bytes("savegate: %s\n" % text))
    except OSError:
        pass  # full, or nobody reads it


def _integer(names, otherwise):
    for name in names:
        try:
            return int(os.environ[name])
        except (KeyError, ValueError):
            continue
    return otherwise


def _whole(number):
    """Of any type, NumPy's and tensors too."""
    whole = int(number)
    if whole != number:
        raise ValueError("%r is no whole number" % (number,))
    return whole


def _relative(path, root):
    path, root = os.fsdecode(path), os.fsdecode(root)
    parts, above = _parts(path), _parts(root)
    if path.startswith("/") != root.startswith("/") or len(parts) <= len(above) or \
            parts[:len(above)] != above:
        return path
    return "/".join(parts[len(above):])


def _parts(path):
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_child_of_multiprocessing():
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _cause_of(error):
    """What the exception came from, and the rank where that was."""
    failures = getattr(error, "failures", None)  # torch.distributed.checkpoint: by rank
    if isinstance(failures, dict) and failures:
        rank = min(failures)
        cause = failures[rank][0] if isinstance(failures[rank], tuple) else failures[rank]
        if isinstance(cause, BaseException):
            return cause, rank
    group = getattr(error, "exceptions", None)  # of an ExceptionGroup
    if isinstance(group, (tuple, list)) and group and isinstance(group[0], BaseException):
        return group[0], None
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__), None


# -- the fork point -----------------------------------------------------------------------------------


def fork_point():
    """Right after the imports, before the environment is looked at and a GPU is touched.

    Where the runner asks for it (`fork_point = true` in subject.toml), the program stays here, and
    every rank of every life goes on from here in a process of its own, forked: what was imported is
    not imported again. Elsewhere this does nothing.
    """
    descriptor = os.environ.pop("SAVEGATE_FORK_SERVER", "")
    if not descriptor:
        return
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        sys.exit("savegate: fork_point() comes too late: CUDA is in use already")
    gc.freeze()  # a collection in a rank, as at its end, would copy the memory of all that is imported
    runner = socket.socket(fileno=int(descriptor))
    runner.send(b"ready")
    while True:
        environment, descriptors, _, _ = socket.recv_fds(runner, 1 << 18, 3)
        if not environment:
            os._exit(0)  # the runner is gone
        sys.stdout.flush()
        sys.stderr.flush()
        pid = _fork_orphan()
        if pid == 0:
            runner.close()
            _become_rank(environment, *descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        runner.send(b"%d" % pid)


def _fork_orphan():
    """0 in the new process, which pid 1 has for its parent when its pid is returned here."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            return 0
        os.write(writing, b"%d" % pid)
        os._exit(0)
    os.close(writing)
    pid = int(os.read(reading, 32) or b"-1")
    os.close(reading)
    os.waitpid(between, 0)
    return pid


def _become_rank(environment, output, errors, go):
    global _stderr
    os.setsid()
    os.dup2(output, 1)
    os.dup2(errors, 2)
    _stderr = _identity(2)
    if os.read(go, 1) != b"g":
        os._exit(1)  # the runner went without it
    for descriptor in (output, errors, go):
        os.close(descriptor)
    os.environ.clear()
    for variable in environment.split(b"\0"):
        name, _, value = os.fsdecode(variable).partition("=")
        if name:
            os.environ[name] = value
    # /proc/PID/environ, by which the file system knows whose operation it sees, is this memory.
    with open("/proc/self/stat", "rb") as stat:
        first, end = (int(word) for word in stat.read().rsplit(b")", 1)[1].split()[47:49])
    room = end - first
    ctypes.memmove(first, environment[:room - 1].ljust(room, b"\0"), room)


# -- states into items: (item without its kind and digest, piece of memory) --------------------------


class _Piece:
    """Bytes where they lie; `owner` keeps them there."""

    def __init__(self, address, size, owner, device="cpu"):
        self.address, self.size, self.owner, self.device = address, size, owner, device

    @classmethod
    def of(cls, data):
        data = bytes(data)
        return cls(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, len(data), data)

    def view(self):
        if self.size == 0:
            return memoryview(b"")
        return memoryview((ctypes.c_char * self.size).from_address(self.address)).cast("B")


def _digested(state, kinds, scopes):
    pieces, items, places = [], Items(), {}
    for name, keys, value in _leaves("", (), state):
        if name in places:
            raise ValueError("two values have the name `%s`: those at %r and %r" %
                             (name, list(places[name]), list(keys)))
        places[name] = keys
        kind = _said(kinds, name)
        for item, piece in _items_of(name, value):
            item["kind"] = kind or _usual_kind(name, item)
            # Of a thing that no two ranks are known to share nothing is claimed.
            item["scope"] = item["scope"] or _said(scopes, name) or "rank"
            items.append(item)
            pieces.append(piece)
    for item, digest in zip(items, _digests().digests(pieces)):
        item["digest"] = digest
    return items


def _said(words, name):
    for begin, word in words.items():
        if name == begin or name.startswith(begin + "."):
            return word
    return None


def _leaves(name, keys, value):
    """(name, the keys that lead there, value)."""
    if isinstance(value, (list, tuple)) and not _is_numbers(value):
        value = {index: each for index, each in enumerate(value)}
    elif _is_wrapper(value):
        value = {inner: getattr(value, inner) for inner in value.__tensor_flatten__()[0]}
    if hasattr(value, "items") and hasattr(value, "keys"):
        for key, each in value.items():
            for leaf in _leaves("%s.%s" % (name, key) if name else str(key), (*keys, key), each):
                yield leaf
    else:
        yield name or "state", keys, value


def _is_wrapper(value):
    """A tensor without memory of its own, made of others, as quantised ones are."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and \
        hasattr(value, "__tensor_flatten__") and not _is_dtensor(value)


def _is_dtensor(value):
    return hasattr(value, "device_mesh") and hasattr(value, "placements")


def _is_numbers(values):
    """A list that is one array, as the states of random number generators are."""
    kinds = {type(value) for value in values}
    return kinds == {float} or kinds == {int} and all(-(1 << 63) <= each < 1 << 63 for each in values)


def _items_of(name, value):
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if isinstance(value, Shard):
        for item, piece in _items_of(name, value.value):
            yield dict(item, scope="shard", global_shape=[int(n) for n in value.global_shape],
                       offset=[int(n) for n in value.offset]), piece
    elif hasattr(value, "local_shards"):  # ShardedTensor
        for shard in value.local_shards():
            yield _item_of_tensor(name, shard.tensor, value.size(), shard.metadata.shard_offsets)
    elif torch is not None and isinstance(value, torch.Tensor):
        for each in _items_of_tensor(name, value):
            yield each
    elif hasattr(value, "addressable_shards"):  # an array of JAX: what of it lies here, on the host
        for shard in {str(shard.index): shard for shard in value.addressable_shards}.values():
            item, piece = _item_of_array(name, shard.data, numpy)
            item.update(global_shape=list(value.shape), offset=[at.start or 0 for at in shard.index],
                        scope="replica" if value.is_fully_replicated else "shard")
            yield item, piece
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        yield _item_of_array(name, value, numpy)
    else:
        yield _item_of_plain(name, value)


def _item(name, dtype, shape, size, global_shape=None, offset=None, scope=""):
    local = [int(extent) for extent in shape]
    return {
        "name": name, "kind": "", "scope": scope, "dtype": dtype,
        "global_shape": local if global_shape is None else [int(extent) for extent in global_shape],
        "local_shape": local,
        "offset": [0] * len(local) if offset is None else [int(first) for first in offset],
        "bytes": size, "digest": "",
    }


def _item_of_plain(name, value):
    """Numbers, bytes, text and nothing."""
    if value is None:
        dtype, shape, data = "bytes", [0], b""
    elif isinstance(value, bool):
        dtype, shape, data = "bool", [], struct.pack("<?", value)
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        dtype, shape, data = "i64", [], struct.pack("<q", value)
    elif isinstance(value, int):
        data = str(value).encode()
        dtype, shape = "bytes", [len(data)]
    elif isinstance(value, float):
        dtype, shape, data = "f64", [], struct.pack("<d", value)
    elif isinstance(value, complex):
        dtype, shape, data = "c128", [], struct.pack("<dd", value.real, value.imag)
    elif isinstance(value, (list, tuple)):
        letter, dtype = ("d", "f64") if isinstance(value[0], float) else ("q", "i64")
        shape, data = [len(value)], struct.pack("<%d%s" % (len(value), letter), *value)
    elif isinstance(value, (str, bytes, bytearray, memoryview)):
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        dtype, shape = "bytes", [len(data)]
    else:
        raise TypeError("`%s`: a value of type %s has no bytes of its own" %
                        (name, type(value).__name__))
    return _item(name, dtype, shape, len(data)), _Piece.of(data)


def _item_of_array(name, array, numpy):
    array = numpy.asarray(array)
    dtype = _DTYPES.get(array.dtype.name)
    if dtype is None:
        data = array.tobytes()
        if array.dtype.hasobject:
            raise TypeError("`%s`: an array of objects has no bytes of its own" % name)
        return _item(name, "bytes", [len(data)], len(data)), _Piece.of(data)
    flat = numpy.ascontiguousarray(array, array.dtype.newbyteorder("="))
    piece = _Piece(flat.__array_interface__["data"][0], flat.nbytes, flat)
    return _item(name, dtype, array.shape, flat.nbytes), piece


def _items_of_tensor(name, tensor):
    if not _is_dtensor(tensor):
        yield _item_of_tensor(name, tensor)
        return
    # A DTensor: what of it lies here.
    if tensor.device_mesh.get_coordinate() is None:
        return
    local = tensor._local_tensor
    placements = tensor.placements
    if any(placement.is_partial() for placement in placements):
        item, piece = _item_of_tensor(name, local)  # a summand
        yield dict(item, scope="rank"), piece
        return
    shape, offset = _place_of(tensor)
    if tuple(shape) != tuple(local.shape):
        raise ValueError("`%s`: the local tensor has shape %s, its placement says %s" %
                         (name, tuple(local.shape), tuple(shape)))
    for inner_name, _, inner in _leaves(name, (), local):
        # What a wrapper holds beside its values, such as their scale, has no place among them.
        place = (tensor.shape, offset) if tuple(inner.shape) == tuple(shape) else ()
        item, piece = _item_of_tensor(inner_name, inner, *place)
        if not any(placement.is_shard() for placement in placements):
            item["scope"] = "replica"
        yield item, piece


def _place_of(tensor):
    try:
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset as place
    except ImportError:  # PyTorch before 2.5
        from torch.distributed._tensor._utils import compute_local_shape_and_global_offset as place
    return place(tensor.shape, tensor.device_mesh, tensor.placements)


def _item_of_tensor(name, tensor, global_shape=None, offset=None):
    torch = sys.modules["torch"]
    dtype = _DTYPES.get(str(tensor.dtype).split(".")[-1])
    if dtype is None or tensor.layout != torch.strided or tensor.device.type == "meta":
        raise TypeError("`%s`: a tensor of %s, %s on %s has no bytes of its own" %
                        (name, tensor.dtype, tensor.layout, tensor.device))
    if tensor.device.type not in ("cpu", "cuda"):
        tensor = tensor.cpu()
    _check_memory(name, tensor)
    with torch.no_grad():
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if flat.device.type == "cuda":
        torch.cuda.current_stream(flat.device).synchronize()  # what fills it is done
        if not _digests().on_devices:
            flat = flat.cpu()
    size = flat.numel() * flat.element_size()
    piece = _Piece(flat.data_ptr(), size, flat, str(flat.device))
    scope = "" if global_shape is None else "shard"
    return _item(name, dtype, flat.shape, size, global_shape, offset, scope), piece


def _check_memory(name, tensor):
    """A tensor may have a shape and no memory: a wrapper of others, or one whose storage was freed."""
    if tensor.numel() == 0:
        return
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    needed = (last + 1) * tensor.element_size()
    if tensor.data_ptr() == 0 or tensor.untyped_storage().nbytes() < needed:
        raise TypeError("`%s`: a %s without memory of its own has no bytes" % (name, type(tensor).__name__))


def _usual_kind(name, item):
    for part in name.lower().split("."):
        if part in _USUAL_KINDS:
            return _USUAL_KINDS[part]
    return "counter" if item["dtype"] == "i64" and not item["local_shape"] else "parameter"


# -- digests ----------------------------------------------------------------------------------------

_LEAF = 4096


class _Range(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _LibraryDigests:
    """libsavegate_worker.so."""

    name = "library"
    on_devices = True

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        if self._library.savegate_contract() != CONTRACT:
            raise OSError("it speaks another version of the contract")
        self._library.savegate_error.restype = ctypes.c_char_p

    def digests(self, pieces):
        digests = [""] * len(pieces)
        for device in sorted({piece.device for piece in pieces}):
            places = [place for place, piece in enumerate(pieces) if piece.device == device]
            ranges = (_Range * len(places))(*[(pieces[i].address, pieces[i].size) for i in places])
            texts = ((ctypes.c_char * 33) * len(places))()
            if self._library.savegate_digests(device.encode(), ranges,
                                              ctypes.c_size_t(len(places)), texts) != 0:
                raise RuntimeError(self._library.savegate_error().decode("utf-8", "replace"))
            for place, text in zip(places, texts):
                digests[place] = text.value.decode()
        return digests


class _PackageDigests:
    name = "xxhash"
    on_devices = False

    def __init__(self):
        import xxhash
        self._leaf, self._root = xxhash.xxh3_64_intdigest, xxhash.xxh3_128_hexdigest

    def digests(self, pieces):
        return [_tree(piece.view(), self._leaf, self._root) for piece in pieces]


class _PythonDigests:
    name = "python"
    on_devices = False

    def digests(self, pieces):
        return [_tree(piece.view(), _xxh3_64, _xxh3_128_hex) for piece in pieces]


@functools.lru_cache(maxsize=None)
def _digests():
    library = _library_path()
    if library is not None:
        try:
            return _LibraryDigests(library)
        except (OSError, AttributeError) as error:  # no library, or another one
            _say("%s: %s" % (library, error))
    try:
        return _PackageDigests()
    except ImportError:
        _say("neither libsavegate_worker.so nor the xxhash package is there: digests are slow")
        return _PythonDigests()


def _library_path():
    """Where the runner says, beside this file, or in the folder that its wheel installs."""
    name, here = "libsavegate_worker.so", os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("SAVEGATE_LIBRARY", ""), os.path.join(here, name),
              os.path.join(here, "savegate_hook_library", name)]
    return next((place for place in places if os.path.isfile(place)), None)


def _tree(data, leaf_hash, root_hash):
    leaves = [leaf_hash(data[at:at + _LEAF]) for at in range(0, len(data), _LEAF)]
    return root_hash(struct.pack("<%dQ" % (len(leaves) + 1), *leaves, len(data)))


# XXH3 with seed 0, as its specification writes it.
_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5, _MIX = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, 0x9FB21C651E98DF25
_SECRET_WORDS = (
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af)
_SECRET = struct.pack("<24Q", *_SECRET_WORDS)


def _word(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _half(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _fold(a, b):
    product = a * b
    return product & _M64 ^ product >> 64


def _avalanche(value):
    value = (value ^ value >> 37) * 0x165667919E3779F9 & _M64
    return value ^ value >> 32


def _swap(value):
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def _mix_16(data, at, secret):
    return _fold(_word(data, at) ^ _word(_SECRET, secret),
                 _word(data, at + 8) ^ _word(_SECRET, secret + 8))


def _xxh3_64(data):
    """Of at least one byte."""
    size = len(data)
    if size > 240:
        return _merge(_long(data), 11, size * _P64_1)
    if size > 128:
        total = size * _P64_1
        for i in range(8):
            total += _mix_16(data, 16 * i, 16 * i)
        total = _avalanche(total & _M64)
        for i in range(8, size // 16):
            total += _mix_16(data, 16 * i, 16 * (i - 8) + 3)
        return _avalanche(total + _mix_16(data, size - 16, 119) & _M64)
    if size > 16:
        total = size * _P64_1
        for i in range((size - 1) // 32 + 1):
            total += _mix_16(data, 16 * i, 32 * i) + _mix_16(data, size - 16 * (i + 1), 32 * i + 16)
        return _avalanche(total & _M64)
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        return _avalanche(size + _swap(low) + high + _fold(low, high) & _M64)
    if size >= 4:
        value = _half(data, size - 4) + (_half(data, 0) << 32) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _MIX & _M64
        value = (value ^ (value >> 35) + size) * _MIX & _M64
        return value ^ value >> 28
    value = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
    value ^= _half(_SECRET, 0) ^ _half(_SECRET, 4)
    value = (value ^ value >> 33) * _P64_2 & _M64
    value = (value ^ value >> 29) * _P64_3 & _M64
    return value ^ value >> 32


def _rotated(value, by):
    return (value << by | value >> 64 - by) & _M64


def _xxh3_128_hex(data):
    """Of whole words, at least one: what a root is."""
    size = len(data)
    if size > 240:
        sums = _long(data)
        low, high = _merge(sums, 11, size * _P64_1), _merge(sums, 117, ~(size * _P64_2) & _M64)
    elif size > 16:
        low, high = _middle_128(data, size)
    elif size > 8:
        first, last = _word(data, 0), _word(data, size - 8)
        product = (first ^ last ^ _word(_SECRET, 32) ^ _word(_SECRET, 40)) * _P64_1
        low = (product & _M64) + (size - 1 << 54)
        last ^= _word(_SECRET, 48) ^ _word(_SECRET, 56)
        high = (product >> 64) + last + (last & _M32) * (_P32_2 - 1) & _M64
        product = (low & _M64 ^ _swap(high)) * _P64_2
        low, high = _avalanche(product & _M64), _avalanche((product >> 64) + high * _P64_2 & _M64)
    else:
        product = (_word(data, 0) ^ _word(_SECRET, 16) ^ _word(_SECRET, 24)) * (_P64_1 + (size << 2))
        high = (product >> 64) + (product << 1) & _M64
        low = product & _M64 ^ high >> 3
        low = (low ^ low >> 35) * _MIX & _M64
        low, high = low ^ low >> 28, _avalanche(high)
    return "%016x%016x" % (high, low)


def _middle_128(data, size):
    low, high = size * _P64_1, 0

    def mix(one, two, secret):
        nonlocal low, high
        low = low + _mix_16(data, one, secret) & _M64
        low ^= _word(data, two) + _word(data, two + 8) & _M64
        high = high + _mix_16(data, two, secret + 16) & _M64
        high ^= _word(data, one) + _word(data, one + 8) & _M64

    if size > 128:
        for at in range(0, 128, 32):
            mix(at, at + 16, at)
        low, high = _avalanche(low), _avalanche(high)
        for at in range(128, size - 31, 32):
            mix(at, at + 16, at - 125)
        mix(size - 16, size - 32, 103)
    else:
        for i in range((size - 1) // 32, -1, -1):
            mix(16 * i, size - 16 * (i + 1), 32 * i)
    total = low * _P64_1 + high * _P64_4 + size * _P64_2 & _M64
    return _avalanche(low + high & _M64), -_avalanche(total) & _M64


def _long(data):
    sums = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    size = len(data)
    stripes = (size - 1) // 64
    words = struct.unpack_from("<%dQ" % (8 * stripes), data)
    for block in range(0, stripes, 16):
        count = min(16, stripes - block)
        for lane in range(8):
            column = words[8 * block + lane:8 * (block + count):8]
            total = 0
            for word, secret in zip(column, _SECRET_WORDS[lane:]):
                keyed = word ^ secret
                total += (keyed & _M32) * (keyed >> 32)
            sums[lane] += total
            sums[lane ^ 1] += sum(column)
        if count == 16 and block + 16 <= (size - 1) // 1024 * 16:
            for lane in range(8):
                value = sums[lane] & _M64
                sums[lane] = (value ^ value >> 47 ^ _SECRET_WORDS[16 + lane]) * _P32_1
        sums = [value & _M64 for value in sums]
    for lane in range(8):
        word = _word(data, size - 64 + 8 * lane)
        keyed = word ^ _word(_SECRET, 121 + 8 * lane)
        sums[lane] += (keyed & _M32) * (keyed >> 32)
        sums[lane ^ 1] += word
    return [value & _M64 for value in sums]


def _merge(sums, secret, start):
    total = start
    for i in range(4):
        total += _fold(sums[2 * i] ^ _word(_SECRET, secret + 16 * i),
                       sums[2 * i + 1] ^ _word(_SECRET, secret + 16 * i + 8))
    return _avalanche(total & _M64)
