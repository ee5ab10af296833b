"""One thread that serves every connection and timer of the test device."""

import heapq
import itertools
import os
import selectors
import time
from collections import deque


class Loop:
    """Callbacks run on the thread of run(). Only post() may be called from elsewhere."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.timers = []
        self.order = itertools.count()
        self.posted = deque()
        self.running = True
        self.wake_read, self.wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self.wake_read, selectors.EVENT_READ, self._woken)

    def post(self, callback):
        self.posted.append(callback)
        try:
            os.write(self.wake_write, b"x")
        except BlockingIOError:
            pass  # the pipe is full: it wakes all the same

    def after(self, seconds, callback):
        """Returns a timer for cancel()."""
        timer = [time.monotonic() + seconds, next(self.order), callback]
        heapq.heappush(self.timers, timer)
        return timer

    @staticmethod
    def cancel(timer):
        timer[2] = None

    def watch(self, file, events, callback):
        try:
            self.selector.modify(file, events, callback)
        except KeyError:
            self.selector.register(file, events, callback)

    def forget(self, file):
        try:
            self.selector.unregister(file)
        except (KeyError, ValueError):
            pass  # closed before: nothing to forget

    def attach(self, client, may_read=lambda: True):
        """Serves the socket of an MQTT client for as long as it has one."""
        both = selectors.EVENT_READ | selectors.EVENT_WRITE

        def ready(events):
            if not may_read() and client.socket():
                self.forget(client.socket())
            elif events & selectors.EVENT_READ:
                client.loop_read()
            if events & selectors.EVENT_WRITE and client.socket():
                client.loop_write()

        def listen(events):
            return lambda _client, _userdata, sock: self.watch(sock, events, ready)

        client.on_socket_open = listen(selectors.EVENT_READ)
        client.on_socket_register_write = listen(both)
        client.on_socket_unregister_write = listen(selectors.EVENT_READ)
        client.on_socket_close = lambda _client, _userdata, sock: self.forget(sock)

    def run(self):
        while self.running:
            for key, events in self.selector.select(self._until_next_timer()):
                key.data(events)
            self._run_timers()

    def _until_next_timer(self):
        return max(0.0, self.timers[0][0] - time.monotonic()) if self.timers else None

    def _run_timers(self):
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            callback = heapq.heappop(self.timers)[2]
            if callback:
                callback()

    def _woken(self, _events):
        os.read(self.wake_read, 4096)
        while self.posted:
            self.posted.popleft()()
