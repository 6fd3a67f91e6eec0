"""The hook by itself: what it writes, what it digests, and that it never changes the program."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_wheel  # noqa: E402
import savegate_hook  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
try:
    import jax
except ImportError:
    jax = None
try:
    import torch
except ImportError:
    torch = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARY = os.environ.get("SAVEGATE_LIBRARY", os.path.join(ROOT, "build/lib/libsavegate_worker.so"))


class Run:
    """The environment of a rank, and the lines that it wrote."""

    def __init__(self, **variables):
        self._folder = tempfile.TemporaryDirectory()
        self.events = os.path.join(self._folder.name, "rank-0.jsonl")
        self._environment = mock.patch.dict(os.environ, dict(
            {"RANK": "0", "WORLD_SIZE": "1", "SAVEGATE_EVENTS": self.events,
             "SAVEGATE_DIR": self._folder.name, "SAVEGATE_CONTROL": ""}, **variables))

    def __enter__(self):
        self._environment.start()
        return self

    def __exit__(self, *unused):
        self._environment.stop()
        self._folder.cleanup()

    def lines(self, event=None):
        with open(self.events) as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if event in (None, line["event"])]


class Daemon:
    """Answers marks; `while_held` runs while the mark "held" waits for its answer."""

    def __init__(self, path, while_held=lambda: None):
        self.served = []  # (number of the connection, name of the mark)
        self.interrupted = None  # what ended the wait for "held"
        self._while_held, self._connections = while_held, 0
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(path)
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self):
        while True:
            try:
                connection = self._server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(self._connections, connection), daemon=True).start()
            self._connections += 1

    def _serve(self, number, connection):
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                name = json.loads(line)["name"]
                self.served.append((number, name))
                if name == "held":
                    self._while_held()
                try:
                    connection.sendall(b'{"ok":true}\n')
                except OSError:
                    return  # the program went on without the answer


def report_a_phase():
    savegate_hook.Hook().phase("written")


def quiet():
    return mock.patch.object(savegate_hook, "_say", lambda text: None)


class EventsTest(unittest.TestCase):
    def test_a_clean_life_is_told_in_order(self):
        with Run(SAVEGATE_UNTIL="save 1") as run:
            hook = savegate_hook.Hook()
            hook.load_begin()
            hook.resumed(None)
            hook.update(1, samples=[(0, 7)])
            with hook.saving(1, {"model": {"w": 1.5}}) as saving:
                pass
            self.assertTrue(hook.until_reached(saving.save))
            hook.done()
            self.assertEqual([line["event"] for line in run.lines()],
                             ["hello", "resumed", "update", "save_begin", "save_end", "durable", "done"])
            item = run.lines("save_begin")[0]["items"][0]
            self.assertEqual((item["name"], item["kind"], item["dtype"], item["bytes"]),
                             ("model.w", "parameter", "f64", 8))

    def test_without_an_event_file_nothing_is_done(self):
        with Run(SAVEGATE_EVENTS=""):
            hook = savegate_hook.Hook()
            with hook.saving(1, {"unknown": object()}):
                pass
            hook.done()
            self.assertFalse(hook.enabled)

    def test_an_exception_of_the_save_passes_through_and_is_told_from_its_first_cause(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            with self.assertRaises(RuntimeError):
                with hook.saving(1, {}):
                    try:
                        raise OSError(28, "No space left on device", os.environ["SAVEGATE_DIR"] + "/step_1/a")
                    except OSError as error:
                        raise RuntimeError("save failed") from error
            end = run.lines("save_end")[0]
            self.assertFalse(end["ok"])
            self.assertEqual(end["error"]["errno_name"], "ENOSPC")
            self.assertEqual(end["error"]["path"], "step_1/a")
            self.assertIn("save failed", end["error"]["text"])
            self.assertEqual(run.lines("durable"), [])

    def test_failures_by_rank_name_the_rank(self):
        class ByRank(Exception):
            failures = {3: (OSError(5, "Input/output error"), None)}

        with Run() as run:
            hook = savegate_hook.Hook()
            with self.assertRaises(ByRank):
                with hook.saving(1, {}):
                    raise ByRank()
            error = run.lines("save_end")[0]["error"]
            self.assertEqual((error["rank"], error["errno_name"]), (3, "EIO"))

    def test_what_an_error_knows_of_its_bytes_is_told(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            error = OSError(28, "No space left on device", "shard")
            error.rank, error.offset, error.requested = 1, 4096, 512
            with self.assertRaises(OSError):
                with hook.saving(1, {}):
                    raise error
            told = run.lines("save_end")[0]["error"]
            self.assertEqual((told["rank"], told["offset"], told["requested"]), (1, 4096, 512))

    @unittest.skipIf(sys.version_info < (3, 11), "Python before 3.11 has no exception groups")
    def test_of_a_group_of_exceptions_the_first_is_the_cause(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            with self.assertRaises(BaseException):
                with hook.saving(1, {}):
                    raise ExceptionGroup("many", [OSError(28, "No space left", b"/tmp/shard"), KeyError(1)])  # noqa: F821
            error = run.lines("save_end")[0]["error"]
            self.assertEqual((error["errno_name"], error["path"]), ("ENOSPC", "/tmp/shard"))
            self.assertIn("many", error["text"])

    def test_a_path_below_the_root_is_relative_however_it_is_written(self):
        with Run() as run:
            hook, root = savegate_hook.Hook(), os.environ["SAVEGATE_DIR"]
            paths = (root + "//step_6", root + "/./step_6/", root.replace("/", "//") + "/step_6",
                     os.fsencode(root + "/step_6"), pathlib.Path(root, "step_6"))
            for path in (*paths, root, root + "more/step_6"):
                hook.resumed(6, path=path)
            self.assertEqual([line["path"] for line in run.lines("resumed")],
                             ["step_6"] * len(paths) + [root, root + "more/step_6"])

    def test_an_asynchronous_save_is_durable_when_another_thread_says_so(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            with hook.saving(1, {}, asynchronous=True) as saving:
                pass
            self.assertEqual(run.lines("durable"), [])
            thread = threading.Thread(target=saving.durable)
            thread.start()
            thread.join()
            self.assertTrue(run.lines("durable")[0]["ok"])

    def test_a_refused_load_is_told_with_its_path(self):
        with Run() as run:
            savegate_hook.Hook().resumed(None, path=os.environ["SAVEGATE_DIR"] + "/step_2",
                                         error=FileNotFoundError(2, "gone", "shard"))
            resumed = run.lines("resumed")[0]
            self.assertEqual((resumed["ok"], resumed["step"], resumed["path"]), (False, None, "step_2"))
            self.assertEqual(resumed["error"]["errno_name"], "ENOENT")

    def test_loading_tells_of_what_was_restored_of_nothing_and_of_a_refusal(self):
        with Run() as run:
            hook, root = savegate_hook.Hook(), os.environ["SAVEGATE_DIR"]
            with hook.loading():
                pass
            with hook.loading() as loading:
                loading.path = root + "/step_2"
                loading.restored(2, {"w": 1.0}, save=1)
            with self.assertRaises(SystemExit), hook.loading() as loading:
                loading.path = root + "/step_4"
                raise SystemExit("no shard")
            told = [(line["ok"], line["step"], line.get("path"), len(line.get("items", [])))
                    for line in run.lines("resumed")]
            self.assertEqual(told, [(True, None, None, 0), (True, 2, "step_2", 1),
                                    (False, None, "step_4", 0)])
            self.assertEqual(run.lines("resumed")[2]["error"]["text"], "SystemExit: no shard")

    def test_a_checkpoint_is_printed_with_its_items_or_with_why_it_is_not_complete(self):
        def broken():
            yield 0, {"model": {"w": 1.5}}
            raise FileNotFoundError(2, "gone", "shard-1")

        printed = io.StringIO()
        with Run(), contextlib.redirect_stdout(printed):
            folder = os.environ["SAVEGATE_DIR"] + "/step_2"
            savegate_hook.print_checkpoint(folder, 2, lambda: [(1, {"model": {"w": 1.5}})])
            savegate_hook.print_checkpoint(folder, 2, broken, announced=False)
            saved = savegate_hook.Hook().items({"model": {"w": 1.5}})
        whole, cut = [json.loads(line) for line in printed.getvalue().splitlines()]
        self.assertEqual(whole, {"path": "step_2", "step": 2, "complete": True, "announced": True,
                                 "error": "", "items": [[1, saved[0]]]})
        self.assertEqual((cut["complete"], cut["announced"], cut["items"]), (False, False, []))
        self.assertIn("shard-1", cut["error"])

    def test_what_the_hook_cannot_digest_says_nothing_of_a_checkpoint(self):
        printed = io.StringIO()
        with Run(), contextlib.redirect_stdout(printed), self.assertRaises(TypeError):
            savegate_hook.print_checkpoint("step_2", 2, lambda: [(0, {"seen": {1}})])
        self.assertEqual(printed.getvalue(), "")

    def test_a_printed_checkpoint_is_json_whatever_its_names_hold(self):
        printed = io.StringIO()
        with Run(), contextlib.redirect_stdout(printed):
            savegate_hook.print_checkpoint("step_2", 2, lambda: [(0, {"\udcff": 1})])
        self.assertEqual(json.loads(printed.getvalue())["items"][0][1]["name"], "?")

    def test_what_the_program_knows_of_its_memory_is_told_beside_what_is_measured(self):
        with Run() as run:
            savegate_hook.Hook().memory("snapshot", step=2, host_staging=4096)
            told, = run.lines("memory")
            self.assertEqual((told["step"], told["memory"]["host_staging"]), (2, 4096))
            self.assertGreater(told["memory"]["host_rss"], 0)

    def test_saves_are_counted_on_from_the_one_that_was_restored(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            hook.resumed(40, items={}, save=4)
            for step in (50, 50):
                with hook.saving(step, {}):
                    pass
            begun = run.lines("save_begin")
            self.assertEqual([line["save"] for line in begun], [5, 6])
            self.assertEqual([line.get("attempt", 1) for line in begun], [1, 2])

    def test_a_save_whose_number_nobody_said_is_no_guess(self):
        with Run() as run, quiet():
            hook = savegate_hook.Hook()
            hook.resumed(40, items={})
            with hook.saving(50, {}):
                pass
            self.assertIn("save=N", run.lines("hook_error")[0]["error"]["text"])


class HarmlessTest(unittest.TestCase):
    def test_a_state_without_bytes_is_told_and_the_program_goes_on(self):
        with Run() as run, quiet():
            hook = savegate_hook.Hook()
            with hook.saving(1, {"lock": threading.Lock()}):
                pass
            hook.done()
            failed = run.lines("hook_error")[0]
            self.assertEqual(failed["name"], "items")
            self.assertIn("`lock`", failed["error"]["text"])
            self.assertEqual(len(run.lines("save_end")), 1)

    def test_wrong_arguments_and_a_closed_event_file_raise_nothing(self):
        with Run() as run, quiet():
            hook = savegate_hook.Hook()
            hook.update("no step", samples=[3])
            self.assertEqual(run.lines("hook_error")[0]["name"], "update")
            os.close(hook._events)
            hook.done()
            self.assertFalse(hook.enabled)
            self.assertTrue(os.path.exists(run.events + ".lost"))

    def test_an_event_file_that_cannot_be_opened_raises_nothing(self):
        with Run(SAVEGATE_EVENTS="/nonexistent/rank-0.jsonl"):
            said = self.said_of("assert not hook.enabled")
        self.assertTrue(said.startswith("savegate: events lost: "), said)

    def said_of(self, program):
        """What a program with a hook prints on stderr; it ends well and prints nothing else."""
        ended = subprocess.run(
            [sys.executable, "-c", "import os, sys, savegate_hook\nhook = savegate_hook.Hook()\n" + program],
            env=dict(os.environ, PYTHONPATH=os.path.dirname(savegate_hook.__file__)),
            capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""), ended.stderr)
        return ended.stderr

    def test_a_stderr_that_takes_nothing_raises_nothing(self):
        for spoil in ("sys.stderr.close()", "os.close(2)", "sys.stderr = None",
                      "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)"):
            with self.subTest(spoil), Run() as run:
                self.said_of(spoil + "\nhook.phase(object())\nhook.update('no step')\nhook.done()")
                self.assertEqual([line["event"] for line in run.lines()],
                                 ["hello", "phase", "hook_error", "done"])

    def test_a_file_that_the_program_opened_as_descriptor_2_is_its_own(self):
        with Run() as run:
            shard = run.events + ".shard"
            self.said_of("os.close(2)\nassert os.open(%r, os.O_WRONLY | os.O_CREAT) == 2\n"
                         "hook.update('no step')" % shard)
            self.assertEqual(os.path.getsize(shard), 0)

    def test_lost_events_are_told_by_a_file_where_stderr_is_elsewhere(self):
        with Run() as run:
            said = self.said_of("os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\nos.closerange(3, 99)\n"
                                "hook.done()")
            self.assertNotIn("lost", said)
            with open(run.events + ".lost") as lost:
                self.assertIn("closed the descriptor", lost.read())

    def test_a_file_that_the_program_opened_as_the_events_descriptor_is_its_own(self):
        with Run() as run, quiet():
            hook = savegate_hook.Hook()
            with tempfile.TemporaryFile() as shard:
                os.dup2(shard.fileno(), hook._events)
                self.addCleanup(os.close, hook._events)
                hook.done()
                self.assertEqual(os.fstat(shard.fileno()).st_size, 0)
            self.assertTrue(os.path.exists(run.events + ".lost"))

    def test_no_public_call_raises_whatever_it_is_given(self):
        class Hostile:
            def __str__(self):
                raise LookupError

            __bool__ = __int__ = __index__ = __fspath__ = __hash__ = __iter__ = __eq__ = __str__

        def calls(hook, bad):
            yield "load_begin", lambda: hook.load_begin()
            yield "resumed", lambda: hook.resumed(bad, items=bad, path=bad, save=bad)
            yield "update", lambda: hook.update(bad, samples=bad, changed=bad)
            yield "exported", lambda: hook.exported(bad, bad)
            yield "memory", lambda: hook.memory(bad, step=bad, host_staging=bad)
            yield "phase", lambda: hook.phase(bad)
            yield "until_reached", lambda: self.assertFalse(hook.until_reached(bad))
            yield "items", lambda: hook.items({"x": bad})
            yield "versions", lambda: savegate_hook.Hook(versions=bad, kinds=bad, scopes=bad)

            def loading():
                with hook.loading() as loading:
                    loading.path = bad
                    loading.restored(bad, bad, save=bad)

            def saving():
                with hook.saving(bad, bad, save=bad) as saving:
                    saving.durable(bad)

            def collective():
                with hook.collective(bad, bad):
                    pass

            yield "loading", loading
            yield "saving", saving
            yield "collective", collective

        for events in ({}, {"SAVEGATE_EVENTS": ""}):
            for bad in (Hostile(), [], {1}, object(), float("nan"), "\udcff"):
                with Run(SAVEGATE_UNTIL="save 1", **events), quiet():
                    hook = savegate_hook.Hook()
                    for name, call in calls(hook, bad):
                        with self.subTest(name, bad=type(bad), run=not events):
                            call()

    def test_items_that_cannot_be_digested_and_facts_that_are_no_number_are_a_hook_error(self):
        with Run() as run, quiet():
            hook = savegate_hook.Hook()
            hook.items({"x": {1}})
            hook.memory("save", host_staging=float("nan"))
            savegate_hook.Hook(kinds=3)
            self.assertEqual([line["name"] for line in run.lines("hook_error")],
                             ["items", "memory", "set_words"])
            self.assertEqual(run.lines("memory"), [])

    def test_two_values_of_one_name_are_a_hook_error_that_says_where_they_are(self):
        for state, first, second in (({"a": {"b": 1}, "a.b": 2}, "['a', 'b']", "['a.b']"),
                                     ({1: 1.0, "1": 2.0}, "[1]", "['1']")):
            with Run() as run, quiet():
                self.assertEqual(savegate_hook.Hook().items(state), [])
                text = run.lines("hook_error")[0]["error"]["text"]
                self.assertIn(first, text)
                self.assertIn(second, text)

    def test_a_daemon_that_is_gone_ends_the_marks_alone(self):
        with Run(SAVEGATE_CONTROL="/nonexistent/control") as run, quiet():
            hook = savegate_hook.Hook()
            hook.phase("commit")
            hook.phase("after")
            self.assertEqual(len(run.lines("phase")), 2)

    def test_a_name_that_is_no_text_is_written_all_the_same(self):
        with Run() as run:
            savegate_hook.Hook().resumed(1, items={}, path=os.fsdecode(b"step_\xff"))
            self.assertEqual(run.lines("resumed")[0]["path"], "step_?")

    def test_a_forked_child_says_whose_its_lines_are(self):
        with Run() as run:
            hook = savegate_hook.Hook()
            child = os.fork()
            if child == 0:
                hook.phase("written")
                os._exit(0)
            os.waitpid(child, 0)
            hook.phase("waited")
            written, waited = run.lines("phase")
            self.assertEqual(written["pid"], child)
            self.assertNotIn("pid", waited)

    def test_a_forked_child_that_makes_a_hook_of_its_own_says_no_second_hello(self):
        with Run() as run:
            savegate_hook.Hook()
            child = os.fork()
            if child == 0:
                savegate_hook.Hook().phase("written")
                os._exit(0)
            os.waitpid(child, 0)
            self.assertEqual([(line["event"], line["pid"]) for line in run.lines()],
                             [("hello", os.getpid()), ("phase", child)])

    def test_a_spawned_child_says_no_second_hello(self):
        import multiprocessing
        with Run() as run:
            savegate_hook.Hook()
            child = multiprocessing.get_context("spawn").Process(target=report_a_phase)
            child.start()
            child.join()
            self.assertEqual([(line["event"], line["pid"]) for line in run.lines()],
                             [("hello", os.getpid()), ("phase", child.pid)])

    def test_marks_of_threads_and_children_go_over_lines_of_their_own(self):
        with Run() as run:
            path = run.events + ".control"
            daemon = Daemon(path)
            self.addCleanup(daemon.close)
            with mock.patch.dict(os.environ, {"SAVEGATE_CONTROL": path}):
                hook = savegate_hook.Hook()
            hook.phase("main")
            other = threading.Thread(target=hook.phase, args=("thread",))
            other.start()
            other.join()
            child = os.fork()
            if child == 0:
                hook.phase("child")
                os._exit(0)
            os.waitpid(child, 0)
            hook.phase("main again")
            self.assertEqual([name for _, name in daemon.served], ["main", "thread", "child", "main again"])
            lines = [line for line, _ in daemon.served]
            self.assertEqual(len(set(lines)), 3)
            self.assertEqual(lines[0], lines[3])

    def held_mark(self, handler):
        """The hook's control word and the daemon, where a signal comes while the main thread waits."""
        handled = threading.Event()

        def interrupt():
            os.kill(os.getpid(), signal.SIGUSR1)
            handled.wait(10)

        with Run() as run:
            path = run.events + ".control"
            daemon = Daemon(path, interrupt)
            self.addCleanup(daemon.close)
            with mock.patch.dict(os.environ, {"SAVEGATE_CONTROL": path}):
                hook = savegate_hook.Hook()

            def on_signal(*unused):
                try:
                    handler(hook)
                finally:
                    handled.set()

            before = signal.signal(signal.SIGUSR1, on_signal)
            self.addCleanup(signal.signal, signal.SIGUSR1, before)
            try:
                hook.phase("held")
            except (KeyboardInterrupt, TimeoutError) as error:
                daemon.interrupted = error
            hook.phase("after")
            return hook._control, daemon

    def test_a_signal_handler_sends_marks_of_its_own_while_one_is_held(self):
        control, daemon = self.held_mark(lambda hook: hook.phase("handler"))
        self.assertTrue(control)
        self.assertEqual([name for _, name in daemon.served], ["held", "handler", "after"])

    def test_the_answer_to_a_mark_that_was_interrupted_is_no_later_ones(self):
        def leave(hook):
            raise KeyboardInterrupt

        control, daemon = self.held_mark(leave)
        self.assertTrue(control)
        self.assertEqual(daemon.served, [(0, "held"), (1, "after")])

    def test_what_the_programs_signal_handler_raises_reaches_the_program(self):
        def give_up(hook):
            raise TimeoutError("the save takes too long")

        with quiet():
            control, daemon = self.held_mark(give_up)
        self.assertIsInstance(daemon.interrupted, TimeoutError)
        self.assertTrue(control)


class ItemsTest(unittest.TestCase):
    def items(self, state, **named):
        with Run():
            return savegate_hook.Hook(**named).items(state)

    def test_nested_values_have_dotted_names(self):
        items = self.items({"model": {"layers": [{"w": b"ab"}, {"w": b""}]}, "step": 3, "note": None})
        self.assertEqual([item["name"] for item in items],
                         ["model.layers.0.w", "model.layers.1.w", "step", "note"])
        self.assertEqual([item["bytes"] for item in items], [2, 0, 8, 0])

    def test_the_kind_is_that_of_the_usual_name_unless_the_program_says_it(self):
        state = {"model": {"w": 1.0}, "optimizer": {"m": 1.0}, "lr_scheduler": {"last": 1},
                 "rng": random.getstate(), "step": 1, "ema": {"w": 1.0}}
        kinds = {item["name"].split(".")[0]: item["kind"]
                 for item in self.items(state, kinds={"ema": "derived"})}
        self.assertEqual(kinds, {"model": "parameter", "optimizer": "optimizer", "step": "counter",
                                 "lr_scheduler": "scheduler", "rng": "rng", "ema": "derived"})

    def test_a_generators_state_is_one_array(self):
        items = self.items({"rng": random.getstate()})
        self.assertEqual([(item["dtype"], item["local_shape"]) for item in items],
                         [("i64", []), ("i64", [625]), ("bytes", [0])])

    def test_a_shard_says_what_it_is_a_slice_of(self):
        item, = self.items({"w": savegate_hook.Shard([1.0, 2.0], global_shape=[4], offset=[2])})
        self.assertEqual((item["scope"], item["global_shape"], item["local_shape"], item["offset"]),
                         ("shard", [4], [2], [2]))

    def test_a_scope_that_the_program_says_is_that_of_values_without_a_place(self):
        slice_of = savegate_hook.Shard([1.0, 2.0], global_shape=[4], offset=[2])
        items = self.items({"model": {"w": slice_of, "b": 1.0}}, scopes={"model": "replica"})
        self.assertEqual([item["scope"] for item in items], ["shard", "replica"])

    def test_numbers_have_the_bytes_of_their_type(self):
        items = self.items({"a": True, "b": 1 + 2j, "c": 1 << 70, "d": "text", "e": -1})
        self.assertEqual([(item["dtype"], item["bytes"]) for item in items],
                         [("bool", 1), ("c128", 16), ("bytes", 22), ("bytes", 4), ("i64", 8)])


def engines():
    """All that can digest here, by name."""
    found = [savegate_hook._PythonDigests()]
    try:
        found.append(savegate_hook._PackageDigests())
    except ImportError:
        pass
    if os.path.exists(LIBRARY):
        found.append(savegate_hook._LibraryDigests(LIBRARY))
    return found


def digests_of(values):
    pieces = [piece for value in values for _, piece in savegate_hook._items_of("x", value)]
    return [engine.digests(pieces) for engine in engines()]


class DigestsTest(unittest.TestCase):
    def test_the_known_digests_come_out(self):
        with open(os.path.join(ROOT, "harness/worker/digest_vectors.txt")) as file:
            vectors = [line.split() for line in file if not line.startswith("#")]
        self.assertGreater(len(vectors), 20)
        for size, digest in vectors:
            data = bytes((7 * i + i // 256) % 256 for i in range(int(size)))
            for engine in engines():
                self.assertEqual(engine.digests([savegate_hook._Piece.of(data)]), [digest],
                                 "%s bytes by %s" % (size, engine.name))

    def test_engines_agree_on_every_short_length(self):
        if len(engines()) == 1:
            self.skipTest("libsavegate_worker.so is not built, and there is no xxhash package")
        data = random.Random(7).randbytes(4200)
        pieces = [savegate_hook._Piece.of(data[:size]) for size in range(0, 300)]
        pieces += [savegate_hook._Piece.of(data[:size]) for size in range(300, 4200, 117)]
        first, *others = (engine.digests(pieces) for engine in engines())
        for other in others:
            self.assertEqual(other, first)


@unittest.skipIf(numpy is None, "NumPy is not importable")
class NumpyTest(unittest.TestCase):
    def test_an_array_has_the_digest_of_its_bytes_contiguous_or_not(self):
        for dtype in ("f4", "f8", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8", "c16"):
            array = (numpy.arange(1500) % 97).astype(dtype).reshape(30, 50)
            for shape in (array, array.T, array[:, ::3], array[:0], array[3, 4]):
                digests = digests_of([shape, shape.tobytes()])
                for of_array, of_bytes in digests:
                    self.assertEqual(of_array, of_bytes, (dtype, shape.shape))

    def test_an_item_says_dtype_and_shape(self):
        with Run():
            items = savegate_hook.Hook().items({"a": numpy.zeros((2, 3), "f4"), "b": numpy.int64(3),
                                                "c": numpy.array(1 + 2j)})
        self.assertEqual([(item["dtype"], item["local_shape"], item["bytes"]) for item in items],
                         [("f32", [2, 3], 24), ("i64", [], 8), ("c128", [], 16)])

    def test_numbers_of_numpy_are_numbers(self):
        with Run() as run:
            hook, number = savegate_hook.Hook(), numpy.int64
            hook.resumed(number(3), save=number(1))
            hook.update(number(4), samples=numpy.array([[0, 7]]))
            with hook.saving(number(4), {}):
                pass
            hook.memory("save", number(4), host_staging=number(5))
            self.assertEqual(run.lines("hook_error"), [])
            told = [(line["event"], line["step"]) for line in run.lines()[1:]]
            self.assertEqual(told, [("resumed", 3), ("update", 4), ("save_begin", 4), ("save_end", 4),
                                    ("durable", 4), ("memory", 4)])
            self.assertEqual(run.lines("update")[0]["samples"], [[0, 7]])
            self.assertEqual(run.lines("durable")[0]["save"], 2)
            self.assertEqual(run.lines("memory")[0]["memory"]["host_staging"], 5)

    def test_an_array_of_objects_is_refused(self):
        with self.assertRaises(TypeError):
            list(savegate_hook._items_of("x", numpy.array([object()])))


@unittest.skipIf(torch is None, "PyTorch is not importable")
class TorchTest(unittest.TestCase):
    DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
              "complex128", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool")

    def tensors(self, device):
        for name in self.DTYPES:
            if hasattr(torch, name):
                base = (torch.arange(1500, device=device) % 97).to(torch.float32).reshape(30, 50)
                yield base.to(getattr(torch, name))

    def views(self, device):
        """Each with its bytes."""
        for tensor in self.tensors(device):
            for view in (tensor, tensor.t(), tensor[:, ::3], tensor[:0], tensor[3, 4]):
                flat = view.contiguous().reshape(-1).cpu().view(torch.uint8)
                yield view, bytes(flat.tolist())

    def test_a_tensor_has_the_digest_of_its_bytes_contiguous_or_not(self):
        for view, data in self.views("cpu"):
            for of_tensor, of_bytes in digests_of([view, data]):
                self.assertEqual(of_tensor, of_bytes, (view.dtype, view.shape))

    def test_a_tensor_of_a_gpu_is_digested_there(self):
        if not torch.cuda.is_available():
            self.skipTest("no GPU")
        library = savegate_hook._LibraryDigests(LIBRARY)
        for view, data in self.views("cuda"):
            with mock.patch.object(savegate_hook, "_digests", lambda: library):
                _, piece = savegate_hook._item_of_tensor("x", view)
            self.assertEqual(piece.device, str(view.device))
            of_tensor, of_bytes = library.digests([piece, savegate_hook._Piece.of(data)])
            self.assertEqual(of_tensor, of_bytes, (view.dtype, view.shape))

    def test_a_parameter_and_a_conjugate_have_their_values_bytes(self):
        value = torch.tensor([1 + 2j, 3 - 4j])
        for parameter, conjugate, of_bytes in digests_of([
                torch.nn.Parameter(value), value.conj().conj(), value.numpy().tobytes()
                if numpy is not None else bytes(torch.view_as_real(value).reshape(-1)
                                                .view(torch.uint8).tolist())]):
            self.assertEqual(parameter, of_bytes)
            self.assertEqual(conjugate, of_bytes)

    def test_a_wrapper_of_tensors_is_the_tensors_in_it(self):
        from torch.testing._internal.two_tensor import TwoTensor
        one, two = torch.arange(6.0), torch.ones(6)
        with Run():
            hook = savegate_hook.Hook(kinds={"ema": "derived"})
            wrapped = hook.items({"ema": torch.nn.Parameter(TwoTensor(one, TwoTensor(two, one)))})
            plain = hook.items({"ema": {"a": one, "b": {"a": two, "b": one}}})
        self.assertEqual([item["name"] for item in wrapped], ["ema.a", "ema.b.a", "ema.b.b"])
        self.assertEqual(wrapped, plain)

    def test_a_tensor_with_a_shape_and_no_memory_is_refused(self):
        from torch.testing._internal.two_tensor import TwoTensor
        freed = torch.ones(8, 8)
        views = freed[2:], freed.t()[1:]
        freed.untyped_storage().resize_(0)
        for tensor in (*views, savegate_hook.Shard(TwoTensor(torch.ones(4), torch.ones(4)), [8], [0])):
            with self.assertRaises(TypeError):
                list(savegate_hook._items_of("x", tensor))

    def test_a_sparse_tensor_is_refused(self):
        with self.assertRaises(TypeError):
            list(savegate_hook._items_of("x", torch.eye(3).to_sparse()))


@unittest.skipIf(jax is None or numpy is None, "JAX is not importable")
class JaxTest(unittest.TestCase):
    def test_an_array_of_jax_is_what_of_it_lies_here(self):
        array = numpy.arange(6, dtype="float32").reshape(2, 3)
        with Run():
            hook = savegate_hook.Hook()
            ours, = hook.items({"w": array})
            whole, = hook.items({"w": jax.numpy.asarray(array)})
            lower = types.SimpleNamespace(index=(slice(2, 4), slice(None)), data=jax.numpy.asarray(array))
            half = types.SimpleNamespace(shape=(4, 3), is_fully_replicated=False,
                                         addressable_shards=[lower])
            part, = hook.items({"w": half})
        self.assertEqual((whole["scope"], whole["dtype"], whole["offset"]), ("replica", "f32", [0, 0]))
        self.assertEqual((part["scope"], part["global_shape"], part["offset"]), ("shard", [4, 3], [2, 0]))
        self.assertEqual([whole["digest"], part["digest"]], [ours["digest"]] * 2)


@unittest.skipIf(torch is None, "PyTorch is not importable")
class ShardedTest(unittest.TestCase):
    """As rank 1 of 2: nothing is sent."""

    def setUp(self):
        try:
            from torch.testing._internal.distributed.fake_pg import FakeStore
        except ImportError:
            self.skipTest("this PyTorch has no process group for tests")
        torch.distributed.init_process_group("fake", rank=1, world_size=2, store=FakeStore())
        self.addCleanup(torch.distributed.destroy_process_group)

    def item(self, value):
        with Run(RANK="1", WORLD_SIZE="2"):
            items = savegate_hook.Hook().items({"w": value})
        self.assertEqual(len(items), 1)
        return items[0]

    def place(self, item):
        return item["scope"], item["global_shape"], item["local_shape"], item["offset"]

    def test_a_dtensor_is_its_local_shard_or_a_replica(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Replicate, Shard
        mesh = init_device_mesh("cpu", (2,))
        local = torch.arange(6.0).reshape(2, 3)
        digest = self.item(local)["digest"]
        for placement, place in ((Shard(0), ("shard", [4, 3], [2, 3], [2, 0])),
                                 (Shard(1), ("shard", [2, 6], [2, 3], [0, 3])),
                                 (Replicate(), ("replica", [2, 3], [2, 3], [0, 0]))):
            item = self.item(DTensor.from_local(local, mesh, [placement], run_check=False))
            self.assertEqual(self.place(item), place)
            self.assertEqual(item["digest"], digest)

    def test_a_dtensor_of_a_wrapper_is_the_tensors_in_it_each_at_its_place(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard
        from torch.testing._internal.two_tensor import TwoTensor
        local = TwoTensor(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
        sharded = DTensor.from_local(local, init_device_mesh("cpu", (2,)), [Shard(0)], run_check=False)
        sharded._local_tensor.b = torch.ones(1)  # as a scale beside the values
        with Run(RANK="1", WORLD_SIZE="2"):
            values, scale = savegate_hook.Hook().items({"w": sharded})
        self.assertEqual((values["name"], *self.place(values)), ("w.a", "shard", [4, 3], [2, 3], [2, 0]))
        self.assertEqual((scale["name"], *self.place(scale)), ("w.b", "rank", [1], [1], [0]))

    def test_a_sharded_tensor_is_its_local_shards(self):
        from torch.distributed._shard import sharded_tensor
        from torch.distributed._shard.sharding_spec import ShardMetadata
        local = torch.arange(6.0).reshape(2, 3)
        metadata = sharded_tensor.ShardedTensorMetadata(
            [ShardMetadata([0, 0], [2, 3], "rank:0/cpu"), ShardMetadata([2, 0], [2, 3], "rank:1/cpu")],
            torch.Size([4, 3]))
        sharded = sharded_tensor.ShardedTensor._init_from_local_shards_and_global_metadata(
            [sharded_tensor.Shard(local, metadata.shards_metadata[1])], metadata)
        item = self.item(sharded)
        self.assertEqual(self.place(item), ("shard", [4, 3], [2, 3], [2, 0]))
        self.assertEqual(item["digest"], self.item(local)["digest"])


class WheelTest(unittest.TestCase):
    def test_what_pip_installs_digests_by_the_library_that_it_carries(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libsavegate_worker.so is not built")
        if importlib.util.find_spec("pip") is None:
            self.skipTest("there is no pip")
        with tempfile.TemporaryDirectory() as folder:
            wheel = make_wheel.make_wheel(os.path.join(ROOT, "build"), folder)
            place = os.path.join(folder, "site")
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                            "--disable-pip-version-check", "--root-user-action=ignore", "--target", place, wheel],
                           check=True)
            said = subprocess.run(
                [sys.executable, "-c", "import savegate_hook as h; print(h._digests().name, h.__file__)"],
                env={"PYTHONPATH": place}, cwd=folder, check=True, capture_output=True, text=True)
            self.assertEqual(said.stdout.split(), ["library", os.path.join(place, "savegate_hook.py")])


if __name__ == "__main__":
    unittest.main()
