-- Hints, the record and the messages, in Lua 5.1: the same as hints.py, record.py and messages.py of slurm_sns/submit,
-- which is the authority. Of the record only what the submit filter writes.
--
-- Pure. A user's text is never used as a pattern, a format or code here, and messages show it only through `quote`.
-- luacheck: std min
-- SPDX-License-Identifier: GPL-2.0-or-later

local M = {}

local PREFIX = "sns:"
M.PREFIX = PREFIX
local SHOWN_BYTES = 40
local MOST_BYTES = 512
local VALUED = { "alpha", "program", "max-scale", "heuristic" }
local EXAMPLES = { alpha = "0.9", program = "mg", ["max-scale"] = "4", heuristic = "mix-fit" }
local FLAGS = { "exclusive", "reprofile", "restartable" }
local MOST_CHECKPOINT_S = 604800
local SAID = { [""] = true, yes = true, no = false }
local KEYS, IS_FLAG, IS_KEY = {}, {}, {}
for _, key in ipairs(VALUED) do
  KEYS[#KEYS + 1], IS_KEY[key] = key, true
end
for _, key in ipairs(FLAGS) do
  KEYS[#KEYS + 1], IS_KEY[key], IS_FLAG[key] = key, true, true
end

function M.begins(text, start)
  return text:sub(1, #start) == start
end

function M.split(text, separator)
  local parts, from = {}, 1
  while true do
    local at = text:find(separator, from, true)
    if not at then
      parts[#parts + 1] = text:sub(from)
      return parts
    end
    parts[#parts + 1] = text:sub(from, at - 1)
    from = at + 1
  end
end

-- texts -------------------------------------------------------------------------------------------------------------

local function whole(number)
  return string.format("%.0f", number)
end

function M.say(messages, name, values)
  return (messages[name]:gsub("{([%w_]+)}", function(field)
    local value = values[field]
    return type(value) == "number" and whole(value) or value
  end))
end

function M.quote(text)
  local shown = text:sub(1, SHOWN_BYTES):gsub("[^\032-\126]", "?"):gsub("'", "?")
  return "'" .. shown .. (#text > SHOWN_BYTES and "...'" or "'")
end

-- hints -------------------------------------------------------------------------------------------------------------

function M.is_alpha(text)
  local fraction = text:match("^0?%.([0-9]+)$")
  if fraction then
    return #fraction <= 9 and fraction:find("[1-9]") ~= nil
  end
  local zeros = text:match("^1%.(0+)$")
  return text == "1" or (zeros ~= nil and #zeros <= 9)
end

function M.is_program(text)
  return #text >= 1 and #text <= 64 and not text:find("[^A-Za-z0-9._+-]")
end

function M.is_max_scale(text)
  return text:find("^[1-9][0-9]?$") ~= nil and tonumber(text) <= 64
end

function M.is_checkpoint(text)
  return #text <= 6 and text:find("^[1-9][0-9]*$") ~= nil and tonumber(text) <= MOST_CHECKPOINT_S
end

local function contains(list, wanted)
  for _, entry in ipairs(list) do
    if entry == wanted then
      return true
    end
  end
  return false
end

local function is_valid(key, value, heuristics)
  if key == "alpha" then
    return M.is_alpha(value)
  elseif key == "program" then
    return M.is_program(value)
  elseif key == "max-scale" then
    return M.is_max_scale(value)
  end
  return contains(heuristics, value)
end

-- Adds one hint to `hints`, or returns the message about its value; `shown` is the key as the user wrote it. A flag is
-- true or false there, and `restartable` the text of its number if it has one.
local function add(hints, key, value, shown, tbl)
  if key == "restartable" and SAID[value] == nil then
    if not M.is_checkpoint(value) then
      return M.say(tbl.messages, key, { key = shown, value = M.quote(value) })
    end
    hints[key] = value
  elseif IS_FLAG[key] then
    if SAID[value] == nil then
      return M.say(tbl.messages, "flag", { key = shown, value = M.quote(value) })
    end
    hints[key] = SAID[value]
  elseif value == "" then
    return M.say(tbl.messages, "missing", { key = shown, example = EXAMPLES[key] })
  elseif is_valid(key, value, tbl.heuristics) then
    hints[key] = value
  else
    local valid = table.concat(tbl.heuristics, ", ")
    return M.say(tbl.messages, key, { key = shown, value = M.quote(value), valid = valid })
  end
end

local function add_comment(hints, comment, tbl)
  if #comment > MOST_BYTES then
    local valid = table.concat(KEYS, ", ") .. ", off"
    return M.say(tbl.messages, "long", { value = M.quote(comment), most = MOST_BYTES, valid = valid })
  end
  local entries, seen = M.split(comment:sub(#PREFIX + 1), ","), {}
  if #entries == 1 and entries[1] == "off" then
    hints.off = true
    return
  end
  for _, entry in ipairs(entries) do
    local at = entry:find("=", 1, true)
    local key, value = entry, ""
    if at then
      key, value = entry:sub(1, at - 1), entry:sub(at + 1)
    end
    local shown = "--comment " .. PREFIX .. key
    if key == "off" then
      return M.say(tbl.messages, "off", {})
    elseif not IS_KEY[key] then
      local valid = table.concat(KEYS, ", ") .. ", off"
      return M.say(tbl.messages, "unknown", { key = "--comment", value = M.quote(PREFIX .. key), valid = valid })
    elseif seen[key] then
      return M.say(tbl.messages, "duplicate", { key = shown })
    end
    seen[key] = true
    if at and value == "" then
      return M.say(tbl.messages, "missing", { key = shown, example = EXAMPLES[key] or "yes" })
    end
    local message = add(hints, key, value, shown, tbl)
    if message then
      return message
    end
  end
end

local function add_options(hints, options, tbl)
  for _, option in ipairs(options) do
    local key, value = option[1], option[2]
    if not IS_KEY[key] then
      local valid = "--sns-" .. table.concat(KEYS, ", --sns-")
      return M.say(tbl.messages, "unknown", { key = "option", value = M.quote("--sns-" .. key), valid = valid })
    end
    local message = add(hints, key, value, "--sns-" .. key, tbl)
    if message then
      return message
    end
  end
end

-- The hints of a job as a table, in which missing hints are nil. The second result is the message for the user if a
-- hint is wrong, else nil.
function M.parse(job, tbl)
  local hints, message = {}, nil
  if M.begins(job.comment, PREFIX) then
    message = add_comment(hints, job.comment, tbl)
  end
  message = message or add_options(hints, job.options, tbl)
  return hints, message
end

-- the record --------------------------------------------------------------------------------------------------------

-- One text for equal numbers such as 0.90, .9 and 0.9. It works on the digits, so that no locale matters.
local function canonical_alpha(text)
  local units, fraction = text:match("^([01]?)%.?([0-9]*)$")
  fraction = fraction:gsub("0+$", "")
  return (units == "" and "0" or units) .. (fraction == "" and "" or "." .. fraction)
end

-- The text of AdminComment with our record: the hints, then `values`, a list of words with values. No record of ours
-- stands in `admin_comment` yet.
function M.written(admin_comment, hints, values)
  local parts = { PREFIX .. "2" }
  for _, key in ipairs(VALUED) do
    local value = hints[key]
    if value then
      parts[#parts + 1] = key .. "=" .. (key == "alpha" and canonical_alpha(value) or value)
    end
  end
  for _, flag in ipairs(FLAGS) do
    local value = hints[flag]
    if value then
      parts[#parts + 1] = value == true and flag or flag .. "=" .. value
    end
  end
  if hints.fixed then
    parts[#parts + 1] = "fixed"
  end
  for _, pair in ipairs(values) do
    parts[#parts + 1] = pair[1] .. "=" .. (type(pair[2]) == "number" and whole(pair[2]) or pair[2])
  end
  local segment = table.concat(parts, " ")
  return admin_comment == "" and segment or admin_comment .. ";" .. segment
end

return M
