--- The language server: starting it, asking it, telling it what the user did, and what it says of itself.

local config = require("calomel.config")
local message = require("calomel.message")

local M = {}

M.NAME = "calomel"
-- A person who asked for the status waits no longer.
local ANSWER_MS = 3000
local STOP_MS = 3000
-- A server that ended by itself is started again after so long, twice as long each time; one that ran for a while has
-- all its starts before it again.
local AGAIN_MS = 1000
local MOST_STARTS = 5
local STEADY_MS = 60000
-- A model that loads for so long is spoken of.
local LOADING_MS = 1000
-- Silences that last until the user does something about them, and that he may not have asked for.
local LASTING = { ignored_path = true, off_language = true }

---@class calomel.Silence
---@field uri string
---@field kind "fill"|"edit"
---@field reason string
---@field message string

---@class calomel.ServerState
---@field state "loading"|"ready"|"off"|"error"
---@field message string
---@field outage integer? Which time of the session it is that the model's server stopped answering.

--- What each running server said last, by the client's id.
---@type table<integer, calomel.ServerState>
M.states = {}
--- Why nothing was shown last, by the buffer's URI.
---@type table<string, calomel.Silence>
M.silences = {}

--- Why no server runs that should; nil when one does.
---@type string?
M.trouble = nil

--- Starts in a row that came to nothing, when the last one was, and how many were asked for: an older one is void.
local starts, started_at, asked_for = 0, 0, 0
--- Servers that we stop ourselves, by the client's id.
---@type table<integer, true>
local stopping = {}

--- Servers whose user was told that the model loads, by the client's id.
---@type table<integer, true>
local awaited = {}

--- What the user was told.
---@type table<string, true>
local told = {}

--- Tell the user something, once, or once per outage.
---@param what string
---@param level integer
---@param state boolean? `:Calomel status` says it anyway.
---@param outage integer?
---@param brief string?
local function tell(what, level, state, outage, brief)
    local key = (outage or "") .. what
    if not told[key] then
        told[key] = true
        message.say(what, level, state, brief)
    end
end

--- Say that the model loads, if that takes longer than people expect an editor to wait, and when it is ready.
---@param id integer
local function announce(id)
    vim.defer_fn(function()
        local state = M.states[id]
        if vim.lsp.get_client_by_id(id) and (not state or state.state == "loading") then
            awaited[id] = true
            local what = state and state.message ~= "" and state.message or "The model is loading."
            message.say(("%s Suggestions appear once it is ready."):format(what), vim.log.levels.INFO, true)
        end
    end, LOADING_MS)
end

---@param state calomel.ServerState
local function on_status(_, state, ctx)
    M.states[ctx.client_id] = state
    if state.state == "ready" then
        if awaited[ctx.client_id] then
            awaited[ctx.client_id] = nil
            message.say(state.message, vim.log.levels.INFO, true)
        end
        for uri, silence in pairs(M.silences) do
            -- What they say is over.
            if silence.reason == "no_model" or silence.reason == "loading" then
                M.silences[uri] = nil
            end
        end
    end
    if state.outage then
        -- A question with buttons would take the keys that are being typed.
        local how = ":CalomelModel meanwhile uses nano, :CalomelModel chooses another"
        local who = state.message:match("^(.-) at .* stopped answering") or "The server"
        local brief = who:gsub("^the", "The") .. " is away. :CalomelModel meanwhile uses nano"
        tell(("%s (%s)"):format(state.message, how), vim.log.levels.ERROR, true, state.outage, brief)
    elseif state.state == "error" then
        tell(("%s; for details, run `calomel doctor`."):format((state.message:gsub("%.$", ""))), vim.log.levels.WARN, true)
    end
    vim.cmd.redrawstatus({ bang = true })
end

---@param silence calomel.Silence
local function on_silence(_, silence)
    M.silences[silence.uri] = silence
    if LASTING[silence.reason] then
        tell(silence.message, vim.log.levels.INFO)
    end
end

--- Called with the URI of a document whose last answer is known to have more edits.
---@type fun(uri: string)
M.counted = function() end

--- Called with the URI of a document and the name of a text whose first line was given: the next answer has all of it.
---@type fun(uri: string, id: string)
M.extended = function() end

--- What the server wants the user to read, it says once.
local function on_message(_, params)
    local level = params.type <= 2 and vim.log.levels.WARN or vim.log.levels.INFO
    message.say((params.message:gsub("^Calomel: ", "")), level)
end

--- A server ended. One that nobody stopped is started again.
---@param code integer
---@param signal integer
---@param id integer
local function on_exit(code, signal, id)
    M.states[id], awaited[id] = nil, nil
    local stopped = stopping[id]
    stopping[id] = nil
    if stopped or (code == 0 and signal == 0) or vim.v.exiting ~= vim.NIL then
        return
    end
    if vim.uv.now() - started_at > STEADY_MS then
        starts = 0
    end
    local how = signal ~= 0 and ("signal %d"):format(signal) or ("status %d"):format(code)
    if starts >= MOST_STARTS then
        M.trouble = ("The server stopped %d times in a row (%s)."):format(starts + 1, how)
        vim.schedule(function()
            tell(M.trouble .. " See :checkhealth calomel; :Calomel restart tries again.", vim.log.levels.WARN)
        end)
        return
    end
    local wait = AGAIN_MS * 2 ^ starts
    starts, asked_for = starts + 1, asked_for + 1
    M.trouble = ("The server stopped (%s); restarting within %d s."):format(how, wait / 1000)
    local mine = asked_for
    vim.defer_fn(function()
        if mine == asked_for and M.trouble then
            started_at = vim.uv.now()
            vim.lsp.enable(M.NAME)
        end
    end, wait)
    vim.schedule(function()
        vim.cmd.redrawstatus({ bang = true })
    end)
end

--- Files alone are served, each with the others of its project.
---@param buf integer
---@param on_dir fun(folder: string?)
local function root_dir(buf, on_dir)
    local name = vim.api.nvim_buf_get_name(buf)
    if name ~= "" and not name:match("^%a[%w+.-]+://") then
        on_dir(vim.fs.root(buf, config.current.root_markers))
    end
end

--- Tell Neovim about the server and have it started where it serves.
function M.enable()
    local cfg = config.current
    vim.lsp.config(M.NAME, {
        cmd = cfg.cmd,
        filetypes = cfg.filetypes,
        root_dir = root_dir,
        before_init = function(params)
            -- Another model may have been chosen since.
            -- What is pushed is the user's choice of a model; nothing of a workspace's is.
            local own = { extensions = true, other_files = true, configuration_filtered = true }
            -- Neovim's own inline completion asks no second time.
            own.extends = config.own()
            params.initializationOptions = { calomel = vim.tbl_extend("force", config.current.settings, own) }
        end,
        capabilities = {
            general = { positionEncodings = { "utf-16" } },
            textDocument = { inlineCompletion = { dynamicRegistration = false } },
        },
        handlers = {
            ["calomel/status"] = on_status,
            ["calomel/silence"] = on_silence,
            ["calomel/count"] = function(_, params)
                M.counted(params.uri)
            end,
            ["calomel/extended"] = function(_, params)
                M.extended(params.uri, params.id)
            end,
            ["window/showMessage"] = on_message,
        },
        -- Every question sends what was typed before it; this is for changes that no question follows.
        flags = { debounce_text_changes = 20 },
        on_exit = on_exit,
        on_init = function(client)
            M.trouble = nil
            announce(client.id)
            client.offset_encoding = "utf-16"
            if not config.builtin() then
                -- Else whoever enables Neovim's inline completion for all servers sees each suggestion twice.
                client.server_capabilities.inlineCompletionProvider = nil
            end
        end,
    })
    vim.lsp.enable(M.NAME)
end

---@return vim.lsp.Client[]
function M.clients()
    return vim.lsp.get_clients({ name = M.NAME })
end

--- The server of a buffer.
---@param buf integer?
---@return vim.lsp.Client?
function M.client(buf)
    return vim.lsp.get_clients({ name = M.NAME, bufnr = buf or 0 })[1]
end

---@param buf integer
---@return string
local function whole_text(buf)
    local ends = ({ unix = "\n", dos = "\r\n", mac = "\r" })[vim.bo[buf].fileformat]
    local whole = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), ends)
    local last = vim.bo[buf].endofline or (vim.bo[buf].fixendofline and not vim.bo[buf].binary)
    return last and whole .. ends or whole
end

--- See to it that the server has the text. Neovim 0.12 forgets to tell a server of changes when it was started after
--- lines had changed in a buffer that had no server any more: then the text is sent as a whole.
---@param buf integer
---@param tick integer When lines changed last.
function M.keep_up(buf, tick)
    local client = M.client(buf)
    if not client or (vim.lsp.util.buf_versions[buf] or 0) >= tick then
        return
    end
    vim.lsp.util.buf_versions[buf] = tick
    client:notify("textDocument/didChange", {
        textDocument = { uri = vim.uri_from_bufnr(buf), version = tick },
        contentChanges = { { text = whole_text(buf) } },
    })
end

--- Execute a command of the server. `done` may be left out when the answer does not matter.
---@param client vim.lsp.Client
---@param name string
---@param arguments any[]
---@param done? fun(err: lsp.ResponseError?, result: any)
function M.execute(client, name, arguments, done)
    local params = { command = "calomel." .. name, arguments = arguments }
    client:request("workspace/executeCommand", params, done or function() end)
end

--- The same, and wait for the answer.
---@param client vim.lsp.Client
---@param name string
---@param arguments any[]
---@return any result
---@return string? err
function M.execute_sync(client, name, arguments)
    local params = { command = "calomel." .. name, arguments = arguments }
    local answer, err = client:request_sync("workspace/executeCommand", params, ANSWER_MS)
    if answer == nil then
        return nil, err or "the server does not answer"
    end
    return answer.result, answer.err and answer.err.message or nil
end

--- Stop every server, then start it again where it served.
---@param done? fun()
function M.restart(done)
    local clients = M.clients()
    told = {}
    M.trouble, starts, asked_for = nil, 0, asked_for + 1
    for _, client in ipairs(clients) do
        stopping[client.id] = true
        client:stop()
    end
    local timer = assert(vim.uv.new_timer())
    local began = vim.uv.now()
    timer:start(20, 20, function()
        vim.schedule(function()
            if timer:is_closing() then
                return
            end
            if vim.uv.now() - began > STOP_MS then
                for _, client in ipairs(clients) do
                    client:stop(true)
                end
            elseif #M.clients() > 0 then
                return
            end
            timer:close()
            vim.lsp.enable(M.NAME)
            if done then
                done()
            end
        end)
    end)
end

return M
