-- The same POST again and again. Arguments: path, file with the body, status and text that every reply must have.
local body, path, status, wanted
local threads = {}
wrong = 0

function setup(thread) table.insert(threads, thread) end

function init(args)
   path, status, wanted = args[1], tonumber(args[3]), args[4]
   local file = assert(io.open(args[2]))
   body = file:read("*a")
   file:close()
   wrk.headers["Content-Type"] = "application/json"
end

function request() return wrk.format("POST", path, nil, body) end

function response(got, headers, reply)
   if got ~= status or not reply:find(wanted, 1, true) then wrong = wrong + 1 end
end

function done(summary, latency)
   local e, short = summary.errors, 0
   for _, thread in ipairs(threads) do short = short + thread:get("wrong") end
   io.write(string.format('{"requests": %d, "seconds": %f, "errors": %d, "p50_ms": %f, "p99_ms": %f}\n',
      summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout + short,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
