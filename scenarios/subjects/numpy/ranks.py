"""What the ranks say to each other, over TCP: a peer that is gone is an error at once."""

import contextlib
import os
import pickle
import socket
import struct
import time

SILENCE = 10  # seconds after which a peer that says nothing is taken for lost


class Ranks:
    def __init__(self):
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if self.rank == 0:
            with socket.create_server(address) as server:
                peers = [server.accept()[0] for _ in range(1, self.world)]
            for peer in peers:
                peer.settimeout(SILENCE)
            self.peers = [peer for _, peer in sorted((receive(peer), peer) for peer in peers)]
        else:
            self.root = connect(address)
            self.root.settimeout(SILENCE)
            send(self.root, self.rank)

    def gather(self, word):
        """Every rank's word, in the order of ranks, on every rank."""
        if self.rank == 0:
            words = [word] + [receive(peer) for peer in self.peers]
            for peer in self.peers:
                send(peer, words)
            return words
        send(self.root, word)
        return receive(self.root)

    @contextlib.contextmanager
    def together(self):
        """What fails within it on one rank fails on all, with the first rank's error."""
        failure = None
        try:
            yield
        except Exception as error:
            failure = error
            failure.rank = self.rank
        for first in filter(None, self.gather(failure and (failure, vars(failure)))):
            error, fields = first
            vars(error).update(fields)
            raise error from failure


def connect(address):
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.01)  # rank 0 does not listen yet


def send(peer, word):
    data = pickle.dumps(word)
    peer.sendall(struct.pack("<Q", len(data)) + data)


def receive(peer):
    def exactly(size):
        data = b""
        while len(data) < size:
            got = peer.recv(size - len(data))
            if not got:
                raise ConnectionResetError("a peer is gone")
            data += got
        return data

    return pickle.loads(exactly(struct.unpack("<Q", exactly(8))[0]))
