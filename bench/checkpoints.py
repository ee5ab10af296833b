"""Modules that hand over checkpoints: each Task once an interval, spread over it. Prints figures.

    checkpoints.py --url COORDINATOR --ids FILE --bytes N --interval SECONDS --seconds SECONDS
"""

import argparse
import concurrent.futures
import http.client
import os
import time
import urllib.parse

SENDERS = 16


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Run:
    def __init__(self, options):
        self.options = options
        self.address = urllib.parse.urlsplit(options.url).netloc
        with open(options.ids, encoding="ascii") as file:
            self.ids = file.read().split()
        self.took, self.refused = [], 0

    def send(self, number, step, due):
        body = os.urandom(self.options.bytes)  # equal bytes would be stored once
        time.sleep(max(0, due - time.monotonic()))
        began = time.monotonic()
        connection = http.client.HTTPConnection(self.address, timeout=90)
        connection.request("PUT", f"/t/{self.ids[number]}/checkpoint?step={step}", body)
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            self.took.append((time.monotonic() - began) * 1000)
        else:
            self.refused += 1

    def run(self):
        began = time.monotonic()
        apart = self.options.interval / len(self.ids)
        with concurrent.futures.ThreadPoolExecutor(SENDERS) as senders:
            for number in range(int(self.options.seconds / apart)):
                step, task = divmod(number, len(self.ids))
                senders.submit(self.send, task, step, began + number * apart)
        size = f"{self.options.bytes // 1024} KiB handed over -> answered"
        print(f"{size}: p50 (ms)|{quantile(self.took, 0.5):.1f}|<= 60")
        print(f"{size}: p99 (ms)|{quantile(self.took, 0.99):.1f}|<= 200")
        print(f"checkpoints that were stored|{len(self.took)}")
        print(f"checkpoints that were refused|{self.refused}|<= 0")


def main():
    parser = argparse.ArgumentParser()
    for name in ("url", "ids"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("bytes", "interval", "seconds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    Run(parser.parse_args()).run()


main()
