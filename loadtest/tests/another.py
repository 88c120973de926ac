"""Another server, as the first ZeroHTTPd was: HTTP/1.0, whose answers end with the connection, and
a new connection to Redis for each. The first number in its words is its port, and the last one that of
Redis. Without that it has a file, and says how long it is.

    another.py PORT [REDIS_PORT]
"""

import re
import socket
import socketserver
import sys

ASKED = b"INCRBY visitor_count 1\r\nGET visitor_count\r\nLRANGE guestbook_remarks 0 -1\r\n"
NUMBERS = [int(number) for number in re.findall(r"\d+", " ".join(sys.argv[1:]))]


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        if not self.rfile.readline():
            return  # somebody looked whether we are there
        while self.rfile.readline().strip():
            pass
        head = b"HTTP/1.0 200 OK\r\n%s\r\n"
        if len(NUMBERS) < 2:
            self.wfile.write(head % b"Content-Length: 4\r\n" + b"file")
            return
        with socket.create_connection(("127.0.0.1", NUMBERS[-1])) as redis:
            redis.sendall(ASKED)
            with redis.makefile("rb") as replies:
                lines = [replies.readline() for _ in range(4)]  # :1, $1, 1, *0
        self.wfile.write(head % b"" + b"visitor " + lines[2])


socketserver.ThreadingTCPServer.request_queue_size = 100
socketserver.ThreadingTCPServer(("127.0.0.1", NUMBERS[0] if NUMBERS else 0), Client).serve_forever()
