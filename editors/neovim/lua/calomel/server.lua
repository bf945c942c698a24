--- The language server: starting it, asking it, telling it what the user did, and what it says of itself.

local config = require("calomel.config")

local M = {}

M.NAME = "calomel"
-- A person who asked for the status waits no longer.
local ANSWER_MS = 3000
local STOP_MS = 3000
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

--- What each running server said last, by the client's id.
---@type table<integer, calomel.ServerState>
M.states = {}
--- Why nothing was shown last, by the buffer's URI.
---@type table<string, calomel.Silence>
M.silences = {}

--- What the user was told.
---@type table<string, true>
local told = {}

--- Tell the user something, once.
---@param message string
---@param level integer
local function tell(message, level)
    if not told[message] then
        told[message] = true
        vim.notify("Calomel: " .. message, level)
    end
end

---@param state calomel.ServerState
local function on_status(_, state, ctx)
    M.states[ctx.client_id] = state
    if state.state == "error" then
        tell(("%s; `calomel doctor` says more."):format((state.message:gsub("%.$", ""))), vim.log.levels.WARN)
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

--- What the server wants the user to read, it says once.
local function on_message(_, params)
    vim.notify(params.message, params.type <= 2 and vim.log.levels.WARN or vim.log.levels.INFO)
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
        init_options = { calomel = vim.tbl_extend("force", cfg.settings, { extensions = true }) },
        capabilities = {
            general = { positionEncodings = { "utf-16" } },
            textDocument = { inlineCompletion = { dynamicRegistration = false } },
        },
        handlers = {
            ["calomel/status"] = on_status,
            ["calomel/silence"] = on_silence,
            ["window/showMessage"] = on_message,
        },
        -- Every question sends what was typed before it; this is for changes that no question follows.
        flags = { debounce_text_changes = 20 },
        on_init = function(client)
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
    for _, client in ipairs(clients) do
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
