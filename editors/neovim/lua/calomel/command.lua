--- `:Calomel`, and what its subcommands do.

local buffer = require("calomel.buffer")
local message = require("calomel.message")
local server = require("calomel.server")
local situation = require("calomel.situation")
local text = require("calomel.text")

local M = {}

local SNOOZE_MINUTES = 10
local SCOPES = { "file", "global", "language" }

---@param message string
---@param level integer?
local function say(message, level)
    vim.notify("Calomel: " .. message, level or vim.log.levels.INFO)
end

--- The server of this buffer, or any.
---@return vim.lsp.Client?
local function some_client()
    local client = server.client(0) or server.clients()[1]
    if not client then
        say("no server is running; see :checkhealth calomel", vim.log.levels.WARN)
    end
    return client
end

--- The value, or nil where the server sent null.
---@param value any
---@return any
local function known(value)
    return value ~= vim.NIL and value or nil
end

---@param status table
---@param outage integer?
---@return string
local function model_line(status, outage)
    local what = known(status.message) or ""
    if what == "" then
        what = ("%s is %s."):format(known(status.model) or "The model", known(status.state) or "starting")
    end
    if outage then
        what = what:gsub("^no ", "No "):gsub("%.$", "") .. ". Until it answers, :CalomelModel meanwhile uses nano."
    end
    return status.state == "off" and what .. " Suggestions are off." or what
end

--- How many suggestions there were, and what became of them.
---@param status table
---@return string
local function session_line(status)
    local outcomes, silent = known(status.outcomes) or {}, 0
    for reason, count in pairs(known(status.silences) or {}) do
        silent = silent + (reason == "superseded" and 0 or count)
    end
    local accepted = (outcomes.accepted or 0) + (outcomes.partly_accepted or 0)
    return ("This session: %d shown, %d accepted, %d dismissed; nothing to show %d times."):format(
        outcomes.shown or 0,
        accepted,
        outcomes.rejected or 0,
        silent
    )
end

---@param status table
---@return string?
local function speed_line(status)
    local latency = known(status.latency_ms) or {}
    if type(latency.p50) ~= "number" then
        return status.state == "ready" and "Speed: the model has not answered yet." or nil
    end
    return ("Speed: the model answers half of the requests within %.0f ms, 95%% within %.0f ms."):format(
        latency.p50,
        latency.p95
    )
end

--- What is shown in this buffer, or why nothing is.
---@return string
local function buffer_line()
    local here = buffer.describe(0)
    if not here.attached then
        return "This buffer: Calomel does not serve it."
    elseif here.shown then
        return "This buffer: a suggestion is shown."
    elseif here.asking then
        return "This buffer: waiting for the model."
    elseif here.blocked then
        return ("This buffer: nothing shown, because %s."):format(situation.REASONS[here.blocked])
    end
    local silence = server.silences[vim.uri_from_bufnr(0)]
    return silence and "This buffer: " .. situation.why(here.no_text, silence, true) or "This buffer: no request yet."
end

--- What `:Calomel status` prints.
---@return string[]
function M.status_lines()
    local client = server.client(0) or server.clients()[1]
    if not client then
        if server.trouble then
            return { server.trouble .. " See :checkhealth calomel." }
        elseif vim.bo.filetype == "" then
            return { "No server is running: this buffer has no file type. Set one with :set filetype=..." }
        end
        return { "No server is running. See :checkhealth calomel." }
    end
    local status, err = server.execute_sync(client, "status", {})
    if not status then
        return { ("The server does not answer (%s)."):format(err), buffer_line() }
    end
    local state = server.states[client.id]
    local lines = { model_line(status, state and state.outage), buffer_line(), session_line(status) }
    lines[#lines + 1] = speed_line(status)
    lines[#lines + 1] = message.cut and "Last message: " .. message.cut
    return lines
end

local function status()
    vim.api.nvim_echo({ { table.concat(M.status_lines(), "\n") } }, false, {})
end

---@param scope string?
local function toggle(scope)
    scope = scope or "global"
    if not vim.list_contains(SCOPES, scope) then
        say("toggle takes " .. table.concat(SCOPES, ", "), vim.log.levels.ERROR)
        return
    end
    local client = some_client()
    if not client then
        return
    end
    local wish = { scope = scope }
    local what = "suggestions"
    if scope == "file" then
        wish.uri, what = vim.uri_from_bufnr(0), "suggestions for this file"
    elseif scope == "language" then
        wish.language, what = client.get_language_id(0, vim.bo.filetype), "suggestions for " .. vim.bo.filetype
    end
    local result, err = server.execute_sync(client, "toggle", { wish })
    if not result then
        say(err or "the server does not answer", vim.log.levels.ERROR)
        return
    end
    -- Other projects have servers of their own.
    for _, other in ipairs(scope ~= "file" and server.clients() or {}) do
        if other.id ~= client.id then
            server.execute(other, "toggle", { vim.tbl_extend("force", wish, { enabled = result.enabled }) })
        end
    end
    if not result.enabled then
        buffer.hide_all()
    end
    say(("%s %s"):format(what, result.enabled and "on" or "off"))
end

---@param minutes string?
local function snooze(minutes)
    local number = tonumber(minutes or SNOOZE_MINUTES)
    if not number or number < 0 then
        say("snooze takes minutes; 0 ends it", vim.log.levels.ERROR)
        return
    end
    if not some_client() then
        return
    end
    for _, client in ipairs(server.clients()) do
        server.execute(client, "snooze", { number })
    end
    if number > 0 then
        buffer.hide_all()
    end
    say(number > 0 and ("quiet for %g minute%s"):format(number, number == 1 and "" or "s") or "awake")
end

local function log()
    local client = some_client()
    if not client then
        return
    end
    local result, err = server.execute_sync(client, "showLog", {})
    if not result then
        say(err or "the server does not answer", vim.log.levels.ERROR)
        return
    end
    vim.cmd.split({ args = { vim.fn.fnameescape(result.path) } })
    vim.bo.readonly = true
    vim.bo.autoread = true
    vim.cmd("normal! G")
end

local function context()
    local client = server.client(0)
    if not client then
        say("this buffer gets no suggestions", vim.log.levels.WARN)
        return
    end
    local place = vim.api.nvim_win_get_cursor(0)
    local result, err = server.execute_sync(client, "showContext", {
        { textDocument = { uri = vim.uri_from_bufnr(0) }, position = text.position(0, place[1] - 1, place[2]) },
    })
    if not result then
        say(err or "the server does not answer", vim.log.levels.ERROR)
        return
    end
    local lines = {}
    for _, part in ipairs(result.parts or {}) do
        lines[#lines + 1] = ("# %s: %d %s. %s"):format(
            part.part,
            part.tokens,
            part.tokens == 1 and "token" or "tokens",
            part.why
        )
        vim.list_extend(lines, text.lines((part.text:gsub("\r\n?", "\n"))))
        lines[#lines + 1] = ""
    end
    if #lines == 0 then
        lines[1] = "# Nothing: " .. (result.message or "no model sees this file")
    end
    local filetype = vim.bo.filetype
    vim.cmd.new()
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = "nofile", "wipe", false
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    vim.bo.modifiable = false
    vim.bo.syntax = filetype
end

local function restart()
    -- Also when none runs: that is when it is needed most.
    server.restart(function()
        say("restarted")
    end)
end

---@type table<string, fun(argument: string?)>
local SUBCOMMANDS = {
    status = status,
    toggle = toggle,
    snooze = snooze,
    log = log,
    context = context,
    restart = restart,
}

--- Run `:Calomel`.
---@param arguments string[]
function M.run(arguments)
    local name = arguments[1] or "status"
    local subcommand = SUBCOMMANDS[name]
    if not subcommand then
        say("unknown subcommand " .. name, vim.log.levels.ERROR)
        return
    end
    subcommand(arguments[2])
end

--- Complete its arguments.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
    local names = line:match("^%s*%S+%s+toggle%s") and SCOPES or vim.tbl_keys(SUBCOMMANDS)
    if names ~= SCOPES and line:match("^%s*%S+%s+%S+%s") then
        names = {}
    end
    names = vim.tbl_filter(function(name)
        return vim.startswith(name, lead)
    end, names)
    table.sort(names)
    return names
end

return M
