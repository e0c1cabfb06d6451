-- For wrk: every request has a different source address, as through a trusted proxy.
request = function()
  local number = math.random(0, 16777215)
  wrk.headers["X-Forwarded-For"] =
    string.format("10.%d.%d.%d", math.floor(number / 65536), math.floor(number / 256) % 256, number % 256)
  return wrk.format()
end
