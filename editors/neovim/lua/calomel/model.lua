--- `:CalomelModel`: which models there are, and moving to one of them. The choice is kept in a file of Neovim's own, and
--- counts until `setup` says something else of the server.

local config = require("calomel.config")
local say = require("calomel.message").say
local server = require("calomel.server")

local M = {}

local LARGER = "Show larger models for this machine"

---@class calomel.Model
---@field label string
---@field detail string
---@field settings table<string, any> Those of the section `backend` that choose it, or `fetch`: what is to be downloaded.
---@field current boolean

--- Show what `calomel models recommend` prints.
local function recommend()
    local cmd = config.current.cmd
    if type(cmd) ~= "table" then
        say("`calomel models recommend` names them")
        return
    end
    vim.system({ cmd[1], "models", "recommend" }, { text = true }, function(done)
        vim.schedule(function()
            if done.code ~= 0 then
                say(vim.trim(done.stderr or ""), vim.log.levels.WARN)
                return
            end
            vim.cmd.new()
            vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = "nofile", "wipe", false
            vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(vim.trim(done.stdout), "\n"))
            vim.bo.modifiable = false
        end)
    end)
end

--- Show how far the download of a model is.
---@param client vim.lsp.Client
---@return integer autocmd
local function show_download(client)
    return vim.api.nvim_create_autocmd("LspProgress", {
        pattern = "report",
        callback = function(event)
            local value = event.data.params.value
            if event.data.client_id == client.id and value.title == "Calomel: download" then
                vim.api.nvim_echo({ { value.message } }, false, {})
            end
        end,
    })
end

--- Move to a model, once it answers.
---@param client vim.lsp.Client
---@param label string
---@param settings table<string, any>
local function use(client, label, settings)
    say(("asking %s; until it answers, nothing changes"):format(label))
    local watch = settings.fetch and show_download(client)
    server.execute(client, "useModel", { settings }, function(err, answer)
        if watch then
            vim.api.nvim_del_autocmd(watch)
        end
        if err or type(answer.settings) ~= "table" then
            say(err and err.message or answer.message, vim.log.levels.WARN)
            return
        end
        local problem = config.choose(answer.settings)
        -- Other projects have servers of their own.
        for _, other in ipairs(server.clients()) do
            if other.id ~= client.id then
                local said = { calomel = { backend = config.current.settings.backend } }
                other:notify("workspace/didChangeConfiguration", { settings = said })
            end
        end
        say(answer.message)
        if problem then
            say(problem, vim.log.levels.WARN)
        end
    end)
end

---@param client vim.lsp.Client
---@param models calomel.Model[]
local function ask(client, models)
    local items = vim.list_extend(vim.list_slice(models), { { label = LARGER } })
    vim.ui.select(items, {
        prompt = "Which model should answer?",
        kind = "calomel.model",
        format_item = function(item)
            return item.detail and ("%s%s (%s)"):format(item.current and "* " or "", item.label, item.detail) or item.label
        end,
    }, function(item)
        if item and item.label == LARGER then
            recommend()
        elseif item and not item.current then
            use(client, item.label, item.settings)
        end
    end)
end

--- Ask for the model, or move to the one with this name or path, or to that of the server at this address; `meanwhile` is
--- nano, until the server that stopped answering is back.
---@param name string
function M.choose(name)
    local client = server.client(0) or server.clients()[1]
    if not client then
        say("no server is running; see :checkhealth calomel", vim.log.levels.WARN)
        return
    end
    if name == "meanwhile" then
        server.execute(client, "useModel", { { model = "nano", meanwhile = true } }, function(err, answer)
            say(err and err.message or answer.message)
        end)
        return
    end
    server.execute(client, "models", {}, function(err, answer)
        if err then
            say(err.message, vim.log.levels.WARN)
            return
        end
        if name == "" then
            ask(client, answer.models)
            return
        end
        for _, model in ipairs(answer.models) do
            if model.label == name then
                use(client, name, model.settings)
                return
            end
        end
        if name:find("://", 1, true) or (name .. "/"):find(":%d+/") then
            use(client, name, { upstream = name })
            return
        end
        local file = vim.fn.fnamemodify(vim.fn.expand(name), ":p")
        if name:find("[/\\]") and vim.uv.fs_stat(file) then
            use(client, name, { model = file })
            return
        end
        say(("unknown model %s; :CalomelModel lists the known ones"):format(name), vim.log.levels.WARN)
    end)
end

return M
