# shown.awk: what `make test` shows of a part, while the part says it.
#
#   awk -v part=servers -v failed=FILE -v counts=FILE -f shown.awk
#
# - Left out is what passes. Instead there is a line for each server whose cases are done.
# - The last line is the sum of the part, which is also appended to `counts`, so that all add up. A part that `failed`
#   names has ended with another status than 0, so it has failed once at least.

function show(line) {
    print line
    fflush()
}

function sum(passed, bad, skipped) {
    return passed + 0 " passed" (bad ? ", " bad " failed" : "") (skipped ? ", " skipped " skipped" : "")
}

# Criterion: "[====] Running 118 tests from epoll:", and of each "[PASS] epoll::a_file_says_what_it_is: (0.06s)". What
# --filter leaves out is disabled.
/^\[====\] Running / { left[$6] = $3; next }
/^\[====\] Synthesis|^\[----\] Criterion|^\[RUN \] / { next }
/^\[(PASS|FAIL|SKIP)\] / {
    server = $2
    sub(/:.*/, ":", server)
    if (!/: Test is disabled$/) {
        seen[server, $1]++
        seen[$1]++
        if ($1 != "[PASS]") show($0)
    }
    told = sum(seen[server, "[PASS]"], seen[server, "[FAIL]"], seen[server, "[SKIP]"])
    if (--left[server] == 0 && part != "unit" && told != sum(0)) show(server " " told)
    next
}

# unittest: if a test is explained, how it has ended stands behind the explanation, in a line below its name.
/(^| \.\.\. )ok$|: found out$/ { seen["[PASS]"]++; name = ""; next }
/(^| \.\.\. )(FAIL|ERROR)$|: (SURVIVED|cannot be built)/ { seen["[FAIL]"]++ }
/ \.\.\. skipped/ { seen["[SKIP]"]++ }
/^-+$|^Ran [0-9]+ tests? |^OK( |$)|^$/ { next }
name { show(name); name = "" }
/^test_[^ ]+ \([^ ]+\)$/ { name = $0; next }
!/ \.\.\. (FAIL|ERROR|skipped)/ { sub(/^test_[^ ]+ \([^ ]+\) \.\.\. /, "") } # it passed, and has printed something
{ show($0) }

END {
    bad = seen["[FAIL]"]
    while ((getline line <failed) > 0)
        if (line == part && !bad) bad = 1
    if (!(seen["[PASS]"] + bad + seen["[SKIP]"])) {
        show("No case was run: does ONLY name one?")
        print part >>failed
        bad = 1
    }
    show(part ": " sum(seen["[PASS]"], bad, seen["[SKIP]"]))
    print seen["[PASS]"] + 0, bad + 0, seen["[SKIP]"] + 0 >>counts
}
