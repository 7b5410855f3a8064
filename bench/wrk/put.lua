-- One-key puts. Arguments: path, file with the body, prefix of the keys. Every @KEY@ of the body is another in each request.
local parts, path, prefix, number = {}, nil, nil, 0

function init(args)
   path, prefix = args[1], args[3]
   local file = assert(io.open(args[2]))
   for part in (file:read("*a") .. "@KEY@"):gmatch("(.-)@KEY@") do table.insert(parts, part) end
   file:close()
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   number = number + 1
   return wrk.format("POST", path, nil, table.concat(parts, prefix .. "_" .. number))
end

function done(summary, latency)
   local e = summary.errors
   io.write(string.format('{"requests": %d, "seconds": %f, "errors": %d, "p50_ms": %f, "p99_ms": %f}\n',
      summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
