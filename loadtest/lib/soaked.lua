-- For wrk: what visitors ask for, and what has to be refused, in an order that repeats itself.
local KINDS = 200
local FORM = {["Content-Type"] = "application/x-www-form-urlencoded"}
local cycle, added, at, the_thread = {}, 0, 0, nil

local function add(how_many, request)
  for _ = 1, how_many do
    cycle[added * 77 % KINDS + 1] = request -- 77 and 200 have no common factor: each place once
    added = added + 1
  end
end

local function raw(head)
  return head .. "\r\nHost: localhost\r\n" .. "\r\n"
end

function init()
  add(90, wrk.format("GET", "/")) -- the first one: wrk looks at it, and it has to be whole
  add(48, wrk.format("GET", "/style.css"))
  add(24, wrk.format("GET", "/guestbook"))
  add(4, wrk.format("GET", "/guestbook?page=2"))
  add(4, wrk.format("GET", "/tux.png"))
  add(6, wrk.format("GET", "/tux.png", {Range = "bytes=0-9999"})) -- 206
  add(5, wrk.format("GET", "/style.css", {["If-None-Match"] = "*"})) -- 304, from memory
  add(5, wrk.format("GET", "/tux.png", {["If-None-Match"] = "*"})) -- 304, of an open file
  add(1, wrk.format("OPTIONS", "/guestbook")) -- 204
  add(2, wrk.format("POST", "/guestbook", FORM, "guest-name=Ada&guest-remarks=hello")) -- 303
  add(2, wrk.format("POST", "/guestbook", FORM, "guest-name=&guest-remarks=")) -- 400
  add(1, wrk.format("POST", "/guestbook", {["Content-Type"] = "text/plain"}, "hello")) -- 415
  add(1, wrk.format("POST", "/guestbook", {Origin = "http://example.org"}, "hello")) -- 403
  add(3, wrk.format("GET", "/not-there")) -- 404
  add(2, wrk.format("DELETE", "/guestbook")) -- 405
  add(1, raw("GET  / HTTP/1.1")) -- 400, and the end of the connection
  add(1, raw("POST /guestbook HTTP/1.1\r\nContent-Length: 70000")) -- 413, and the same
  assert(added == KINDS)
end

function request()
  at = at % KINDS + 1
  return cycle[at]
end

-- A thread's global variables are what done() can read of it.
function response(status)
  local name = "status" .. status
  _G[name] = (_G[name] or 0) + 1
end

function setup(thread)
  the_thread = thread -- there is one
end

function done(summary)
  local statuses, errors = {}, summary.errors
  for status = 100, 599 do
    local count = the_thread:get("status" .. status)
    if count then
      statuses[#statuses + 1] = string.format('"%d":%d', status, count)
    end
  end
  io.write(string.format(
    '{"statuses":{%s},"connect":%d,"reset":%d,"time-out":%d}\n', table.concat(statuses, ","),
    errors.connect, errors.read + errors.write, errors.timeout))
end
