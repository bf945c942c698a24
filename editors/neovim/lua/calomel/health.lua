--- `:checkhealth calomel`.

local M = {}

local VERSION_MS = 20000

local function check_program(cmd)
    if type(cmd) == "function" then
        vim.health.ok("your own function starts the server")
        return
    end
    local path = vim.fn.exepath(cmd[1])
    local own = require("calomel.install").installed()
    if path == "" then
        vim.health.error(("%q was not found"):format(cmd[1]), {
            ":CalomelInstall installs it for Neovim only.",
            "Or install Calomel and put `calomel` on your PATH.",
            "Or set it: require('calomel').setup({ cmd = { '/path/to/calomel', 'lsp' } })",
        })
        return
    end
    local is_own = own and own.program == cmd[1]
    vim.health.ok("program: " .. path .. (is_own and ", which :CalomelInstall installed" or ""))
    if own and not is_own then
        vim.health.info("the server installed by :CalomelInstall is not used: " .. own.program)
    end
    if cmd[2] ~= "lsp" then
        return
    end
    local done = vim.system({ cmd[1], "--version" }, { text = true, timeout = VERSION_MS }):wait()
    if done.code == 0 then
        vim.health.ok("version: " .. vim.trim(done.stdout))
    else
        vim.health.error("it does not start: " .. vim.trim(done.stderr or ""))
    end
end

---@param client vim.lsp.Client
local function check_model(client)
    local server = require("calomel.server")
    local status, err = server.execute_sync(client, "status", {})
    if not status then
        vim.health.error(("server %d does not answer: %s"):format(client.id, err))
        return
    end
    local line = ("model: %s, %s. %s"):format(status.model or "none yet", status.state, status.message or "")
    if status.state == "ready" then
        vim.health.ok(line)
    elseif status.state == "error" then
        vim.health.error(line, { ":Calomel log shows what happened; :Calomel restart tries again." })
    else
        vim.health.warn(line)
    end
end

local function check_servers()
    local clients = require("calomel.server").clients()
    if #clients == 0 then
        vim.health.warn(require("calomel.server").trouble or "no server is running", {
            "It starts with the first file that has a file type (:set filetype?).",
            "See Neovim's log; :checkhealth vim.lsp names it.",
        })
    end
    for _, client in ipairs(clients) do
        local answer = client:request_sync("getVersion", vim.empty_dict(), VERSION_MS)
        local info = answer and answer.result or {}
        local buffers = vim.tbl_count(client.attached_buffers)
        vim.health.ok(("server %d: version %s, %d buffer(s), positions in %s"):format(
            client.id,
            info.version or "unknown, it does not answer",
            buffers,
            client.offset_encoding
        ))
        check_model(client)
    end
end

local function check_keys(keys)
    for action, lhs in vim.spairs(keys) do
        if lhs then
            vim.health.info(("%s: %s"):format(action, lhs))
        end
    end
    if not keys.accept then
        return
    end
    for _, client in ipairs(require("calomel.server").clients()) do
        for buf in vim.spairs(client.attached_buffers) do
            local map = vim.api.nvim_buf_call(buf, function()
                return vim.fn.maparg(keys.accept, "i", false, true)
            end)
            if map.buffer == 1 and not vim.startswith(map.desc or "", "Calomel") then
                vim.health.warn(("another mapping of buffer %d took %s"):format(buf, keys.accept), {
                    "Call require('calomel').accept() in it; it returns false when there is nothing to accept.",
                })
            end
        end
    end
end

--- Look at everything that a suggestion needs.
function M.check()
    local config = require("calomel.config")
    vim.health.start("calomel: Neovim")
    if vim.fn.has("nvim-0.11") == 1 then
        vim.health.ok("version " .. tostring(vim.version()))
    else
        vim.health.error("Neovim 0.11 or newer is needed")
        return
    end
    if not require("calomel").is_set_up then
        vim.health.error("it is not set up", { "Call require('calomel').setup() in your init.lua." })
    end
    if config.current.ghost_text == "builtin" and not vim.lsp.inline_completion then
        vim.health.warn("this Neovim has no inline completion of its own, so the plugin shows ghost text itself")
    end
    vim.health.start("calomel: program")
    check_program(config.current.cmd)
    vim.health.start("calomel: server")
    check_servers()
    vim.health.start("calomel: keys")
    check_keys(config.current.keys)
    for _, client in ipairs(vim.lsp.get_clients()) do
        if client.name:lower():find("copilot", 1, true) then
            vim.health.warn(("%s runs too: both will show suggestions"):format(client.name))
        end
    end
end

return M
