--- `:Calomel`, and what its subcommands do.

local buffer = require("calomel.buffer")
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

---@param counts table<string, integer>
---@return string
local function counted(counts)
    local names = vim.tbl_keys(counts)
    table.sort(names, function(a, b)
        return counts[a] > counts[b] or (counts[a] == counts[b] and a < b)
    end)
    return #names == 0 and "none yet"
        or table.concat(
            vim.tbl_map(function(name)
                return ("%s %d"):format(name, counts[name])
            end, names),
            ", "
        )
end

--- What was hidden, or nil where nothing was.
---@param withheld table?
---@return string?
local function held_back(withheld)
    if type(withheld) ~= "table" or type(withheld.last) ~= "table" then
        return nil
    end
    local last = withheld.last
    local line = ("Hidden: %s (%s). The last: %s, %.2f"):format(
        counted(withheld.by_reason or {}),
        counted(withheld.by_maker or {}),
        last.reason,
        last.probability
    )
    if type(last.threshold) == "number" then
        line = line .. (" with a threshold of %.2f"):format(last.threshold)
    end
    return line
end

--- What `:Calomel status` prints.
---@return string[]
function M.status_lines()
    local here = buffer.describe(0)
    local client = server.client(0) or server.clients()[1]
    if not client then
        if server.trouble then
            return { server.trouble .. " See :checkhealth calomel." }
        elseif vim.bo.filetype == "" then
            return { "No server is running: this buffer has no file type. Set one with :set filetype=..." }
        end
        return { "No server is running. See :checkhealth calomel." }
    end
    local lines = {}
    local status, err = server.execute_sync(client, "status", {})
    if not status then
        lines[1] = ("The server does not answer (%s)."):format(err)
    else
        lines[1] = ("%s: %s"):format(status.model or "no model", status.state)
        if type(status.message) == "string" and status.message ~= "" then
            lines[1] = lines[1] .. " - " .. status.message
        end
        lines[#lines + 1] = "Suggestions: " .. counted(status.outcomes or {})
        lines[#lines + 1] = "Hidden or not asked: " .. counted(status.silences or {})
        lines[#lines + 1] = held_back(status.withheld)
        local latency = status.latency_ms or {}
        if type(latency.p50) == "number" then
            lines[#lines + 1] = ("Model: half within %.0f ms, 95%% within %.0f ms"):format(latency.p50, latency.p95)
        end
    end
    if not here.attached then
        lines[#lines + 1] = "This buffer: no suggestions here."
    elseif here.shown then
        lines[#lines + 1] = "This buffer: a suggestion is shown."
    elseif here.asking then
        lines[#lines + 1] = "This buffer: waiting for the server."
    elseif here.blocked then
        lines[#lines + 1] = ("This buffer: nothing shown, because %s."):format(situation.REASONS[here.blocked])
    else
        local silence = server.silences[vim.uri_from_bufnr(0)]
        local why = silence and ("nothing shown. %s (%s)"):format(silence.message, silence.reason) or "no request yet."
        lines[#lines + 1] = "This buffer: " .. why
    end
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
