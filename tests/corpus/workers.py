"""Worker processes that survive what they call: a compiler or library that takes its process down costs one job."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

J = TypeVar("J")


def serve(channel: multiprocessing.connection.Connection, call: Callable[[Any], Any]) -> None:
    """Answers jobs with (error text or None, result) until it is sent None."""
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        for stream in (1, 2):  # compilers and simulated kernels talk there from native code
            os.dup2(log.fileno(), stream)
        while (job := channel.recv()) is not None:
            log.truncate(0)
            log.seek(0)
            try:
                channel.send((None, call(job)))
            except Exception as error:  # whatever a compiler may raise fails this job only
                log.seek(0)
                text = f"{type(error).__name__}: {error}".strip() + "\n" + log.read().decode(errors="replace")
                channel.send((text.rstrip(), None))


class Pool:
    """
    Up to `n` processes that run `call(job)`. A process only ever gets jobs of one group. A job that takes longer than
    `limit` seconds is ended with its process.
    """

    def __init__(self, n: int, call: Callable[[Any], Any], group: Callable[[Any], Any] = lambda job: None,
                 limit: float | None = None):
        self.room, self.call, self.group, self.limit = n, call, group, limit
        self.context = multiprocessing.get_context("spawn")
        self.idle: list[tuple[Any, Any, Any]] = []  # channel, process, group
        self.busy: dict[Any, tuple[Any, Any, float]] = {}  # channel: process, job, when it began

    def run(self, jobs: list[J]) -> Iterator[tuple[J, str | None, Any]]:
        """Yields (job, error or None, result) as they finish."""
        waiting = sorted(jobs, key=lambda j: str(self.group(j)), reverse=True)
        while waiting or self.busy:
            while waiting and len(self.busy) < self.room:
                self._start(waiting.pop())
            yield from self._finish()
        self._dismiss()

    def _start(self, job: Any) -> None:
        group = self.group(job)
        match = next((w for w in self.idle if w[2] == group), None)
        if match:
            self.idle.remove(match)
            channel, process, _ = match
        else:
            self._dismiss()
            channel, theirs = self.context.Pipe()
            process = self.context.Process(target=serve, args=(theirs, self.call), daemon=True)
            process.start()
            theirs.close()
        channel.send(job)
        self.busy[channel] = (process, job, time.monotonic())

    def _finish(self) -> Iterator[tuple[Any, str | None, Any]]:
        for channel in multiprocessing.connection.wait(list(self.busy), timeout=1.0 if self.limit else None):
            process, job, _ = self.busy.pop(channel)
            try:
                answer = channel.recv()
                self.idle.append((channel, process, self.group(job)))
            except (EOFError, ConnectionError):
                process.join()
                answer = (f"its process ended (status {process.exitcode})", None)
            yield (job, *answer)
        for channel, (process, job, began) in list(self.busy.items()):
            if self.limit and time.monotonic() - began > self.limit:
                del self.busy[channel]
                process.kill()
                process.join()
                yield job, f"no result after {self.limit:.0f} seconds", None

    def _dismiss(self) -> None:
        for channel, process, _ in self.idle:
            channel.send(None)
            process.join()
        self.idle.clear()


def progress(text: str, end: bool = False) -> None:
    """One line that is written over, on a terminal; only the last one elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:110]}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end:
        print(text, file=sys.stderr)
