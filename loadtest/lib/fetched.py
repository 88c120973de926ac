"""fetched: one cell of `files`: many files, or a large one, fetched once by one client.

All files must come, with all their bytes. In the first round the bytes are also compared with the
files, before anything is measured. In the other rounds the first few files are, as a warm-up.
"""

import os

from lib import Trouble, curl, filling, meter, subjects, table, web

LIMIT_SECONDS = 120
FEW = 20  # files, for a warm-up

COLUMNS = ["round", "subject", "kind", "files", "bytes", "seconds", "files_per_second",
           "bytes_per_second", "connections", "failed", "errors", "wrong", *meter.COLUMNS]


def raw(cell):
    row = dict(round=cell.round, subject=cell.spot.subject, kind=cell.spot.generator,
               wrong="; ".join(cell.wrong))
    if cell.load:
        load = cell.load
        row.update(files=load.requests, bytes=load.content, seconds="%.6f" % load.seconds,
                   files_per_second="%.1f" % load.rate,
                   bytes_per_second="%.0f" % (load.content / load.seconds if load.seconds else 0),
                   connections=load.connections, failed=load.failed, errors=load.errors_text())
    if cell.reading:
        row.update(zip(meter.COLUMNS, cell.reading.raw()))
    return table.raw_row(COLUMNS, row)


def measure(files, cell, run):
    """Fills the cell, even if something fails."""
    spot = cell.spot
    save_as = os.path.join(run.folder, "raw", "%s-%s-%d" % (
        spot.subject.replace("/", "_"), spot.generator, cell.round))
    paths = getattr(files, spot.generator)
    try:
        with run.open(spot.subject, save_as + ".log") as server:
            files.remember(paths)
            compare(server, files, paths if cell.round == 1 else paths[:FEW])  # also the warm-up
            try:
                with meter.Meter(server.pid, run.cores) as watch:
                    cell.load = curl.run([server.url + path for path in paths], run.cores.client,
                                         save_as, LIMIT_SECONDS)
            finally:
                server.must_live()  # if it did not end well, that is the better reason
            cell.reading = watch.reading
            cell.wrong += subjects.end(server, spot.subject)
    except Trouble as trouble:
        cell.wrong.append(str(trouble))
    if cell.load:
        judge(cell, len(paths), files.bytes_of(paths))


def compare(server, files, paths):
    """Trouble if one response is not its file. Uses one connection, as long as the server keeps
    it."""
    with web.connected(server.url, "the files") as connection:
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            is_right = files.is_right(path, iter(lambda: answer.read(filling.BLOCK), b""))
            if answer.status != 200 or not is_right:
                raise Trouble("it answers with other bytes for %s (status %d)" % (
                    path, answer.status))


def judge(cell, count, size):
    """Checks that all files and all bytes have come, without an error."""
    load = cell.load
    if load.failed:
        cell.wrong.append("%s files failed: %s" % (format(load.failed, ","), load.errors_text()))
    elif (load.requests, load.content) != (count, size):
        cell.wrong.append("%s bytes came in %s files, not %s in %s" % tuple(
            format(number, ",") for number in (load.content, load.requests, size, count)))
