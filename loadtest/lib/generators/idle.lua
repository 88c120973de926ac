-- For wrk: clients that are idle most of the time, as browsers are. Each asks as soon as it is
-- connected, and then every four seconds, because the server closes a connection after five.
local PAUSE_MS = 4000
local asked, clients = 0, 0

function init(words)
  clients = tonumber(words[1])
end

function delay()
  asked = asked + 1
  return asked <= clients and 0 or PAUSE_MS
end

function done(summary, _, _)
  io.write(string.format("%d answers, %d connections ended by the server\n",
    summary.requests, summary.errors.read))
end
