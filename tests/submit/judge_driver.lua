-- Runs sns_judge.lua for the parity tests: one case per line on standard input, one verdict per line on standard output.
-- A case is `path now heartbeat|- killed field...`; a field is `t:name:hex`, `n:name:number`, `b:name:0|1`, `o:hex:hex`.
package.path = arg[1] .. "/?.lua;" .. package.path
local filter, judge = require("sns_filter"), require("sns_judge")

local function unhex(text)
  return (text:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

local function hex(text)
  return (text:gsub(".", function(char) return string.format("%02x", char:byte()) end))
end

local tables = {}

local function verdict(line)
  local words = {}
  for word in line:gmatch("%S+") do
    words[#words + 1] = word
  end
  local path, job = words[1], { options = {} }
  tables[path] = tables[path] or filter.load_table(path)
  for index = 5, #words do
    local kind, name, value = words[index]:match("^(%a):([^:]*):(.*)$")
    if kind == "t" then
      job[name] = unhex(value)
    elseif kind == "n" then
      job[name] = tonumber(value)
    elseif kind == "b" then
      job[name] = value == "1"
    else
      job.options[#job.options + 1] = { unhex(name), unhex(value) }
    end
  end
  return judge.judge(job, tables[path], tonumber(words[2]), tonumber(words[3]), words[4] == "1")
end

for line in io.lines() do
  local done, result = pcall(verdict, line)
  if not done then
    io.write("error ", hex(tostring(result)), "\n")
  elseif result.pass then
    io.write("pass ", hex(result.pass), "\n")
  elseif result.refuse then
    io.write("refuse ", hex(result.refuse), "\n")
  else
    local begin_s = result.begin_s and string.format("%.0f", result.begin_s) or "-"
    io.write("manage ", hex(result.admin_comment), " ", begin_s, "\n")
  end
  io.flush()
end
