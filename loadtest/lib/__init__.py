"""What the load tests share. One idea a file; read them in this order.

What runs, and where:
    processes   what we start, we end
    machine     cores to pin to, limits, and what the report says of the machine
    redis       a Redis of our own, and how often it was asked
    delay       a Redis further away
    servers     one of the seven, from its banner to its end
    peers       lighttpd, nginx, Apache, and the floor
    subjects    whatever can be measured, by its name
    places      where things run: here, or in
    lab         four hosts on one machine
What loads, and what is seen:
    load        what a load generator saw, whichever it was
    ab, wrk, httperf, h2load, curl   each of them run and understood
    meter       what a load cost, and who was busy
    calls       the system calls of a request
    callgrind   its instructions, part by part
    idle        the memory of a connection on which nobody speaks
    web         one well-formed exchange with a server
    work        did every page cost the same?
What a program is made of:
    cells       one cell of a table: one subject under one load, once
    rounds      every cell several times, in an order that no drift can favour
    run         one run of a program, from its options to what is left of it
    experiment  what all the programs have in common
    dials       what is turned while all else stays: a Redis far away, work, cores
    static      what those have in common that ask for files
    xray        a server traced while a few clients come at once
    trace, lanes, picture   what strace wrote, what each thread waited for, and how that looks
    knee, offered, climb, fetched, filling, seeds, soaked   the parts of one program or two
What it came to:
    table, chart, report   Markdown, pictures, and the page with both
    gnuplot, scale, panels   what the pictures are drawn with
    progress    what runs, and how long is left
"""


class Trouble(Exception):
    """Why something could not be measured, in words for the report."""
