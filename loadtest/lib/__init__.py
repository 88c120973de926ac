"""What the load tests share. One idea a file, which its first line says; in the order to read them:

- what runs, and where: processes, machine, redis, delay, servers, peers, subjects, places, lab
- what loads, and what is seen: load; ab, wrk, httperf, h2load, curl; meter, calls, callgrind, idle,
  web
- what a program is made of: cells, rounds, run, kept, experiment, dials, static
- the parts of one program or two: knee, offered, climb, filling, soaked;
  xray, trace, lanes, picture
- what it came to: table, chart, report; gnuplot, scale, panels; progress
"""


class Trouble(Exception):
    """Why something could not be measured, in words for the report."""
