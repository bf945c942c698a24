--- `:CalomelInstall`: the server in a folder of Neovim's own, by uv, or by Python's venv and pip. Each time it goes into a
--- new folder, so that the one before serves until the new one is complete.

local say = require("calomel.message").say

local M = {}

--- The version of the server that belongs to this plugin.
M.VERSION = "0.1.0"

-- Of a plugin that is used where it was cloned.
local CLONE = vim.fs.normalize(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/../../../..")
local WINDOWS = vim.fn.has("win32") == 1
-- Written last: a folder without it is none.
local DONE = "calomel-version"
local PYTHONS = { "python3", "python", "python3.13", "python3.12", "python3.11" }
local SUITS = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
local ASK_MS = 10000
-- An installation that takes longer was broken off.
local UNFINISHED_S = 3600
-- torch for Linux comes with libraries of some GB for NVIDIA's cards, unless it is of this index. Without it, it is large.
local SMALL_TORCH = { "--no-deps", "--index-url", "https://download.pytorch.org/whl/cpu", "torch>=2.11" }
-- The NVIDIA driver's, on Linux and in WSL2.
local CARDS = { "/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi" }
-- What uv and pip say where nothing answers.
local OFFLINE = {
    "NewConnectionError",
    "ConnectTimeout",
    "ProxyError",
    "name resolution",
    "getaddrinfo",
    "dns error",
    "Network is unreachable",
    "tcp connect error",
    "error sending request",
    "client error (Connect)",
}
local NO_TOOL = "neither uv nor a Python from 3.11 to 3.13 with its venv module was found; install one of them "
    .. "(on Debian or Ubuntu: sudo apt install python3 python3-venv), and then :CalomelInstall"

--- The installation that runs; `stopped` once the user took it back.
---@type { job: vim.SystemObj?, stopped: boolean }?
local running

---@return string
local function root()
    return vim.fs.joinpath(vim.fn.stdpath("data"), "calomel")
end

---@return string
local function inside(folder, name)
    return vim.fs.joinpath(folder, WINDOWS and "Scripts" or "bin", WINDOWS and name .. ".exe" or name)
end

--- The newest complete one.
---@return { program: string, version: string, folder: string }?
function M.installed()
    local newest
    for name in vim.fs.dir(root()) do
        local folder = vim.fs.joinpath(root(), name)
        local file = io.open(vim.fs.joinpath(folder, DONE))
        if file then
            local version = file:read("l")
            file:close()
            if not newest or folder > newest.folder then
                newest = { program = inside(folder, "calomel"), version = version, folder = folder }
            end
        end
    end
    return newest
end

--- How the server is started where the user does not say it: the one on the PATH, else the one that was installed here.
---@return string[]
function M.command()
    local own = vim.fn.executable("calomel") == 0 and M.installed()
    return { own and own.program or "calomel", "lsp" }
end

--- What would be installed, and its version; or why that can not be said.
---@param wheel string
---@return string? requirement
---@return string version_or_problem
local function source(wheel)
    if wheel == "" then
        -- The newest of a clone. No package index says whose a name is.
        local built = vim.fn.glob(vim.fs.joinpath(CLONE, "dist", "calomel-*.whl"), true, true)
        table.sort(built)
        wheel = built[#built] or ""
    end
    if wheel == "" then
        return nil, "name a wheel: :CalomelInstall WHEEL; `make wheel` builds one"
    end
    local is_url = vim.startswith(wheel, "https://")
    local path = is_url and wheel or vim.fn.fnamemodify(wheel, ":p")
    local version = vim.fs.basename(path):match("^calomel%-([^-]+)%-.*%.whl$")
    if not version or not (is_url or vim.uv.fs_stat(path)) then
        return nil, ("%s is not a Calomel wheel: name a file or an https address"):format(wheel)
    end
    return path, version
end

--- What makes an environment in a folder, and what installs into that; nil where nothing can.
---@return string[]? make
---@return string[]? install
local function tool(folder)
    local python = inside(folder, "python")
    local uv = vim.fn.exepath("uv")
    if uv ~= "" then
        return { uv, "venv", "--python", ">=3.11,<3.14", folder }, { uv, "pip", "install", "--python", python }
    end
    for _, name in ipairs(PYTHONS) do
        local path = vim.fn.exepath(name)
        if path ~= "" and vim.system({ path, "-c", SUITS }, { timeout = ASK_MS }):wait().code == 0 then
            local pip = { python, "-m", "pip", "install", "--no-input", "--progress-bar", "off" }
            return { path, "-m", "venv", folder }, pip
        end
    end
end

--- Words behind words.
---@return string[]
local function joined(...)
    return vim.iter({ ... }):flatten():totable()
end

--- What a command's output says to the user.
---@param output string
---@return string
local function explained(output)
    for _, sign in ipairs(OFFLINE) do
        if output:lower():find(sign:lower(), 1, true) then
            return "the download failed: this machine is offline, or needs a proxy (HTTPS_PROXY). "
                .. "Connect it and run :CalomelInstall again, or install calomel by hand and put it on the PATH."
        end
    end
    local last = vim.trim(output):match("[^\n]*$")
    return "the installation failed: " .. (last ~= "" and last or "no reason was given")
end

--- Run commands, one behind the other.
---@param done fun(problem: string?)
local function run(all, tell, done)
    local output = ""
    local function hear(_, data)
        output = output .. (data or "")
        tell(data or "")
    end
    local function ended(result)
        if running.stopped then
            done("installation cancelled")
        elseif result.code ~= 0 and not vim.list_contains(all[1], SMALL_TORCH[#SMALL_TORCH]) then
            done(explained(output))
        elseif #all == 1 then
            done(nil)
        else
            run(vim.list_slice(all, 2), tell, done)
        end
    end
    tell(table.concat(all[1], " ") .. "\n")
    local options = { text = true, stdout = hear, stderr = hear }
    local works, job = pcall(vim.system, all[1], options, vim.schedule_wrap(ended))
    if works then
        running.job = job
    else
        done(explained(job))
    end
end

--- Remove what another one has replaced, and what never became complete.
local function tidy()
    local kept = M.installed()
    for name in vim.fs.dir(root()) do
        local folder = vim.fs.joinpath(root(), name)
        local over = vim.uv.fs_stat(vim.fs.joinpath(folder, DONE)) or (tonumber(name) or 0) < os.time() - UNFINISHED_S
        if over and not (kept and kept.folder == folder) then
            vim.fs.rm(folder, { recursive = true, force = true })
        end
    end
end

--- Start what was installed, where it is what is started.
local function begin(version)
    local config, server = require("calomel.config"), require("calomel.server")
    say(("version %s of the server is installed"):format(version))
    if not require("calomel").is_set_up then
        return
    end
    require("calomel").setup(config.given)
    local cmd, own = config.current.cmd, M.installed()
    if type(cmd) == "function" or not own or cmd[1] ~= own.program then
        local other = type(cmd) == "table" and vim.fn.exepath(cmd[1]) or ""
        local what = "Neovim starts the `cmd` of setup() instead; remove `cmd` to use what was installed"
        if other ~= "" and not (config.given or {}).cmd then
            what = ("Neovim starts %s instead; remove it, or set `cmd` to %s"):format(other, own and own.program or "")
        end
        say(what, vim.log.levels.WARN)
    elseif #server.clients() > 0 then
        server.restart()
    end
end

--- Install the server, and start it.
---@param wheel string A file or an https address; empty for the newest one built in the plugin's clone.
function M.run(wheel)
    if running then
        say("an installation is running; :CalomelInstall! stops it", vim.log.levels.WARN)
        return
    end
    local requirement, version = source(wheel)
    if not requirement then
        vim.notify("Calomel: " .. version, vim.log.levels.ERROR)
        return
    end
    vim.fn.mkdir(root(), "p")
    tidy()
    local folder = vim.fs.joinpath(root(), tostring(os.time()))
    local small = vim.uv.os_uname().sysname == "Linux" and not vim.iter(CARDS):any(vim.uv.fs_stat)
    local make, install = tool(folder)
    if not make then
        vim.notify("Calomel: " .. NO_TOOL, vim.log.levels.ERROR)
        return
    end
    -- The extras that nano and GGUF files need, as pip and uv read it.
    local wanted = vim.startswith(requirement, "https://") and "calomel[engine,llama] @ " .. requirement
        or requirement .. "[engine,llama]"
    local all = { make, joined(install, wanted) }
    if small then
        table.insert(all, 2, joined(install, SMALL_TORCH))
    end
    vim.fn.mkdir(vim.fn.stdpath("log"), "p")
    local path = vim.fs.joinpath(vim.fn.stdpath("log"), "calomel-install.log")
    local log = assert(io.open(path, "w"))
    say(("installing the server with %s; :CalomelInstall! stops it"):format(make[1]))
    running = { stopped = false }
    run(all, function(text)
        log:write(text)
        local last = vim.trim(text):match("[^\n]*$")
        vim.schedule(function()
            if running and last ~= "" then
                vim.api.nvim_echo({ { ("Calomel: " .. last):sub(1, vim.v.echospace) } }, false, {})
            end
        end)
    end, function(problem)
        local level = running.stopped and vim.log.levels.INFO or vim.log.levels.ERROR
        running = nil
        log:close()
        if not problem and vim.fn.executable(inside(folder, "calomel")) == 0 then
            problem = "the installation finished without the program `calomel`; check that the wheel is Calomel's"
        end
        if problem then
            vim.fs.rm(folder, { recursive = true, force = true })
            say(level == vim.log.levels.INFO and problem or ("%s (%s)"):format(problem, path), level)
            return
        end
        vim.fn.writefile({ version }, vim.fs.joinpath(folder, DONE))
        begin(version)
    end)
end

--- Stop an installation; what was there before stays.
function M.stop()
    if running and running.job then
        running.stopped = true
        running.job:kill("sigterm")
    else
        say("nothing is being installed")
    end
end

--- Say that the server that is started was installed here, and is not of this plugin's version.
function M.compare()
    local own = M.installed()
    local cmd = require("calomel.config").current.cmd
    if own and type(cmd) == "table" and cmd[1] == own.program and own.version ~= M.VERSION then
        say(("the server has version %s, this plugin %s; :CalomelInstall updates it"):format(own.version, M.VERSION))
    end
end

return M
