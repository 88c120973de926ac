"""What the load tests share. One idea a file, which its first line says:

- subjects/    what is measured, and where it runs: the seven, peers, Redis, its relay, the lab
- generators/  what loads it: ab, wrk, httperf, h2load, curl
- measuring/   what is seen meanwhile: processes, cores, memory, system calls
- reporting/   what it comes to: tables, charts, a page
- seeing/      swim lanes, for xray
- here         one engine for all experiments: experiment, run, cells, rounds
"""


class Trouble(Exception):
    """Why something could not be measured, in words for the report."""
