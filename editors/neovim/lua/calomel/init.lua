--- Fill-in and next-edit suggestions of a local diffusion language model. See |calomel.txt|.

local M = {}

local function attach(buf, client)
    require("calomel.buffer").attach(buf)
    require("calomel.keys").attach(buf)
    if require("calomel.config").builtin() then
        vim.lsp.inline_completion.enable(true, { client_id = client.id })
    end
end

local function detach(buf)
    require("calomel.keys").detach(buf)
    require("calomel.buffer").detach(buf)
end

local function listen()
    local server = require("calomel.server")
    local group = vim.api.nvim_create_augroup("calomel", { clear = true })
    vim.api.nvim_create_autocmd("LspAttach", {
        group = group,
        callback = function(event)
            local client = vim.lsp.get_client_by_id(event.data.client_id)
            if client and client.name == server.NAME then
                attach(event.buf, client)
            end
        end,
    })
    vim.api.nvim_create_autocmd("LspDetach", {
        group = group,
        callback = function(event)
            local client = vim.lsp.get_client_by_id(event.data.client_id)
            if not client or client.name == server.NAME then
                detach(event.buf)
            end
        end,
    })
    vim.api.nvim_create_autocmd("ColorScheme", {
        group = group,
        callback = function()
            require("calomel.render").highlights()
        end,
    })
end

--- Start suggesting. Call it once; |calomel-options| says what `options` may hold.
---@param options table?
function M.setup(options)
    if vim.fn.has("nvim-0.11") == 0 then
        vim.notify("calomel: needs Neovim 0.11 or newer", vim.log.levels.ERROR)
        return
    end
    local config = require("calomel.config")
    config.set(options)
    M.is_set_up = true
    local cmd = config.current.cmd
    if type(cmd) == "table" and vim.fn.executable(cmd[1]) == 0 then
        local how = config.given.cmd and "" or ":CalomelInstall installs it, "
        local message = ("calomel: %q was not found; %ssee :checkhealth calomel"):format(cmd[1], how)
        vim.notify(message, vim.log.levels.WARN)
        return
    end
    require("calomel.install").compare()
    require("calomel.render").highlights()
    listen()
    require("calomel.server").enable()
end

--- Take the suggestion of the current buffer; of a next edit far away only go there. Returns whether there was one.
---@return boolean
function M.accept()
    return require("calomel.action").accept()
end

--- Take the next edit of the current buffer with all that follow from the same answer. Returns whether there was one.
---@return boolean
function M.accept_all()
    return require("calomel.action").accept_all()
end

--- Take the next word of the ghost text.
---@return boolean
function M.accept_word()
    return require("calomel.action").accept_word()
end

--- Take the next line of the ghost text.
---@return boolean
function M.accept_line()
    return require("calomel.action").accept_line()
end

--- Show the next of several texts for the cursor.
---@return boolean
function M.next()
    return require("calomel.action").turn(1)
end

--- Show the one before.
---@return boolean
function M.previous()
    return require("calomel.action").turn(-1)
end

--- Reject what is shown.
---@return boolean
function M.dismiss()
    return require("calomel.action").dismiss()
end

--- Ask now.
---@return boolean
function M.suggest()
    return require("calomel.action").suggest()
end

--- Something is shown in the current buffer that an action could take: "accept", "accept_all", "accept_word",
--- "accept_line", "next", "previous" or "dismiss".
---@param action string?
---@return boolean
function M.visible(action)
    return require("calomel.action").ready(action or "accept")
end

--- Whether Tab should take what is shown rather than indent: for a mapping of your own.
---@return boolean
function M.takes_tab()
    return require("calomel.action").takes_tab()
end

--- A few characters for 'statusline'; empty in buffers without Calomel.
---@return string
function M.statusline()
    local server = require("calomel.server")
    local client = server.client(0)
    if not client then
        return server.trouble and vim.bo.buftype == "" and "Calomel: ended" or ""
    end
    local state = server.states[client.id]
    state = state and state.state or "loading"
    return state == "ready" and "Calomel" or "Calomel: " .. state
end

return M
