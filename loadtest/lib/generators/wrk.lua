-- With a number, wrk offers so many requests a second with each thread, at even intervals. Each takes the next turn, on any
-- connection that is free. If none is, turns are late, and are made up for.
local ffi = require("ffi")
ffi.cdef "struct timespec { long s, ns; }; int clock_gettime(int clock, struct timespec *now);"

function init(words)
  local time, turn = ffi.new("struct timespec")
  if not words[1] then return end
  function delay() -- milliseconds until a connection asks
    ffi.C.clock_gettime(1, time) -- CLOCK_MONOTONIC
    local now = tonumber(time.s) * 1000 + tonumber(time.ns) / 1e6
    turn = (turn or now) + 1000 / words[1]
    return math.max(0, turn - now)
  end
end

-- wrk calls done() when the run is over. It writes the figures to standard output as one line of
-- JSON, which wrk.py reads.

-- To read the i-th of wrk's counted times takes as long as the time is, which is too long if there
-- are many long ones. Then a thousand percentiles replace them.
local WORTH_READING = 2e9

local function times(latency)
  local pairs = {}
  if #latency * latency.max < WORTH_READING then
    for i = 1, #latency do
      local microseconds, count = latency(i)
      pairs[#pairs + 1] = string.format("[%d,%d]", microseconds, count)
    end
  else
    for i = 1, 1000 do
      pairs[#pairs + 1] = string.format("[%d,1]", latency:percentile((i - 0.5) / 10))
    end
  end
  return table.concat(pairs, ",")
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"times":[%s]}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read, errors.write,
    errors.status, errors.timeout, summary.requests > 0 and times(latency) or ""))
end
