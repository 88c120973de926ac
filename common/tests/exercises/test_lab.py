"""make lab: what a reader may type into .mine/bare.c. Each chapter's own passes, and so do variants that
are right; wrong ones are told what was seen.
"""

import concurrent.futures
import os
import subprocess
import sys
import tempfile
import unittest

import place

sys.path.insert(0, os.path.join(place.TOP, "common", "classroom", "lab"))
import traps
from test_bare import FILES
from tried import Missed, Server

REAP = """static void reap(int number)
{
    int error = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = error;
}

int main("""
SIGCHLD = '    check(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), "sigaction");\n'

# chapter, what is changed in its bare.c, what is said. None: it is right.
VARIANTS = {
    "a handler, but accept() is not restarted": (2, [
        ("int main(", "#include <errno.h>\n#include <sys/wait.h>\n" + REAP), (SIGCHLD, "    signal(SIGCHLD, reap);\n")], None),
    "forked twice, and nobody's child": (2, [
        ("int main(", "#include <sys/wait.h>\nint main("), (SIGCHLD, ""),
        ("        if (child == 0) {", "        if (child == 0 && fork() > 0)\n            _exit(0);\n        if (child == 0) {"),
        ("        if (child < 0)", "        waitpid(child, NULL, 0);\n        if (child < 0)")], None),
    "workers that hear of the parent's death from a pipe": (3, [
        ("    pid_t pid, parent = getpid();\n", "    int ends[2];\n    check(pipe(ends), \"pipe\");\n    pid_t pid;\n"),
        ("    check(prctl(PR_SET_PDEATHSIG, SIGTERM), \"prctl\"); /* no worker outlives the parent... */\n"
         "    if (getppid() != parent)\n        return 1; /* ...not even one whose parent died before that call */\n",
         "    close(ends[1]);\n    if (fork() == 0) {\n        read(ends[0], request, 1);\n        kill(getppid(), SIGTERM);\n"
         "        _exit(0);\n    }\n")], None),
    "who may read is told by what was asked": (6, [("advance(&clients[i], fds[i].revents & POLLIN)", "advance(&clients[i], fds[i].events == POLLIN)")], None),

    "nobody reaps": (2, [(SIGCHLD, "")], r"after 20 clients there were 2\d zombies"),
    "the parent keeps the client's descriptor": (2, [("        close(client); /* the child", "        /* the child")],
                                                 "connection had not ended"),
    "the child keeps the listening socket": (2, [("            close(listener);", "")], "had the listening socket open"),
    "workers outlive the parent": (3, [("    check(prctl(PR_SET_PDEATHSIG, SIGTERM), \"prctl\");", "    (void)SIGTERM;")],
                                   r"the parent was killed, and \d s later 4 workers went on"),
    "nobody replaces a worker": (3, [("            wait(NULL);", "            pause();")], r"was killed, and \d s later there were 3"),
    "the address of the variable": (4, [("int client = (int)(intptr_t)argument;", "int client = *(int *)argument;"),
                                        ("        int client = accept", "        static int client;\n        client = accept"),
                                        ("(void *)(intptr_t)client", "&client")], "8 clients came at the same moment, and"),
    "threads that nobody joins": (4, [("pthread_detach(thread);", ";")], r"VmSize\) had grown by \d+ MiB"),
    "closed before it is answered": (1, [("            send(client", "            close(client), send(client")],
                                     "its connection ended without one"),
    "SIGPIPE": (1, [("MSG_NOSIGNAL", "0")], "the server ended"),
    "the address is taken": (1, [("setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int))", "0")], "Address already in use"),
    "send() that blocks in the loop": (6, [("accept4(listener, NULL, NULL, SOCK_NONBLOCK)", "accept4(listener, NULL, NULL, 0)")],
                                       "did not read, its socket was full, and nobody else was served"),
    "no POLLOUT: the rest is forgotten": (6, [("return errno == EAGAIN;", "return false;")], "its answer|got neither"),
    "POLLOUT for everybody": (6, [(".events = POLLIN}", ".events = POLLIN | POLLOUT}")], "of 5 clients that had said nothing, 5 were answered, or sent away"),
}


class Traps(unittest.TestCase):
    def tried(self, name, number, changes=()):
        """What it was told in the first trap that it falls into; None: it falls into none."""
        with open(FILES[number - 1], encoding="utf-8") as file:
            text = file.read()
        for old, new in changes:
            self.assertIn(old, text, name)
            text = text.replace(old, new)
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            program = os.path.join(folder, "bare")
            subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-pthread", "-x", "c", "-", "-o", program],
                           input=text.encode(), check=True)
            try:
                for trap in traps.OF[number]:
                    with Server(program, folder) as server:
                        trap(server)
            except Missed as missed:
                return missed.saw
        return None

    def test_what_is_right_passes_and_what_is_wrong_is_told_what_was_seen(self):
        cases = {"the chapter's own, %d" % number: (number, [], None) for number in range(1, 8)}
        cases.update(VARIANTS)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            told = {name: pool.submit(self.tried, name, *case[:2]) for name, case in cases.items()}
        for name, (_, _, said) in cases.items():
            with self.subTest(name):
                if said:
                    self.assertRegex(str(told[name].result()), said)
                else:
                    self.assertIsNone(told[name].result())

    def test_the_history_is_kept_beside_a_hand_in_and_does_not_hide_it(self):
        lab = os.path.join(place.TOP, "common", "classroom", "lab")
        keep = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[1] + '/lab')['keep'](1)"
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            os.makedirs(os.path.join(folder, ".mine", "01_iterative"))
            for name in ("bare.c", "01_iterative/gone.c"):
                open(os.path.join(folder, ".mine", name), "w", encoding="utf-8").close()
            again = ["git", "--git-dir=.mine/lab.git", "--work-tree=.mine", "commit", "--allow-empty", "-qam", "what the lab saw"]
            for command in (["git", "init", "-q"], ["python3", "-Bc", keep, lab], again, ["git", "add", "-f", ".mine"]):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, env={"PATH": os.environ["PATH"], "HOME": folder})
            found = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout
        for name in ("bare.c", "01_iterative/gone.c", "lab.git/refs/tags/chapter-1"):
            self.assertIn(".mine/%s\n" % name, found)


if __name__ == "__main__":
    unittest.main()
