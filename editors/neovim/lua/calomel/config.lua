--- What the user set, checked, with a default for the rest.

local M = {}

---@class calomel.Keys
---@field accept string|false
---@field accept_always string|false
---@field accept_all string|false
---@field accept_word string|false
---@field accept_line string|false
---@field next string|false
---@field previous string|false
---@field dismiss string|false
---@field suggest string|false

---@class calomel.Config
---@field cmd string[]|function Starts the language server.
---@field filetypes string[]|nil All, if nil.
---@field root_markers string[]
---@field settings table Settings of the server, by section.
---@field keys calomel.Keys
---@field ghost_text "own"|"builtin"|false
---@field next_edit boolean
---@field tab_indents boolean Tab indents where a line begins, and while typing past an edit elsewhere.
---@field hint boolean Say beside a next edit which key takes it, and where it is.
---@field with_menu boolean Show ghost text beside a popup menu in which nothing is selected.
---@field debounce_ms integer

---@type calomel.Config
M.defaults = {
    cmd = { "calomel", "lsp" },
    filetypes = nil,
    root_markers = { "calomel.toml", ".git" },
    settings = {},
    keys = {
        accept = "<Tab>",
        accept_always = "<M-l>",
        accept_all = "<M-a>",
        accept_word = "<C-Right>",
        accept_line = "<C-l>",
        next = "<M-]>",
        previous = "<M-[>",
        dismiss = "<C-]>",
        suggest = "<M-\\>",
    },
    ghost_text = "own",
    next_edit = true,
    tab_indents = true,
    hint = true,
    with_menu = false,
    -- The server waits for a pause in the typing; this only gathers what one key does.
    debounce_ms = 10,
}

---@type calomel.Config
M.current = vim.deepcopy(M.defaults)

--- As the user set it.
---@type table?
M.given = nil

--- Where the model is kept that the user chose.
---@return string
local function choice_path()
    return vim.fs.joinpath(vim.fn.stdpath("data"), "calomel", "model.json")
end

--- The settings with another choice in the place of what they say of the model.
---@param settings table
---@param choice table<string, any> Without a value: taken back.
---@return table
local function with_choice(settings, choice)
    local section = vim.tbl_extend("force", settings.backend or {}, choice)
    for name, value in pairs(choice) do
        section[name] = value ~= vim.NIL and value or nil
    end
    return vim.tbl_extend("force", settings, { backend = section })
end

--- What `setup` was told of the server.
---@param options table
---@return table
local function said(options)
    return type(options.settings) == "table" and options.settings.backend or {}
end

--- The model that was chosen, unless `setup` says something else of the server since.
---@param options table
---@return table<string, any>?
local function kept_choice(options)
    local file = io.open(choice_path(), "r")
    if not file then
        return nil
    end
    local text = file:read("*a")
    file:close()
    local read, kept = pcall(vim.json.decode, text)
    local right = read and type(kept) == "table" and type(kept.choice) == "table"
    return right and vim.deep_equal(kept.said, said(options)) and kept.choice or nil
end

--- Take over the model that the user chose, and keep it.
---@param choice table<string, any>
---@return string? problem
function M.choose(choice)
    M.current.settings = with_choice(M.current.settings, choice)
    local path = choice_path()
    local text = vim.json.encode({ said = said(M.given or {}), choice = choice })
    local made = pcall(vim.fn.mkdir, vim.fs.dirname(path), "p")
    if not made or not pcall(vim.fn.writefile, { text }, path) then
        return ("cannot write %s: the choice lasts until Neovim exits"):format(path)
    end
end

local function key_or_false(value)
    return value == false or (type(value) == "string" and value ~= "")
end

local function strings(value)
    return vim.islist(value) and vim.iter(value):all(function(each)
        return type(each) == "string"
    end)
end

--- The options with the section `backend` under its present name.
---@param options table
---@return table
local function with_present_names(options)
    local settings = type(options.settings) == "table" and options.settings or {}
    if settings.server == nil or settings.backend ~= nil then
        return options
    end
    vim.notify_once("Calomel: settings.server is now called settings.backend: rename it in setup()", vim.log.levels.WARN)
    local renamed = vim.tbl_extend("force", settings, { backend = settings.server })
    renamed.server = nil
    return vim.tbl_extend("force", options, { settings = renamed })
end

--- Take over `options`; raises an error that names what is wrong.
---@param options table?
function M.set(options)
    vim.validate("options", options, "table", true)
    options = with_present_names(options or {})
    for name in pairs(options) do
        if M.defaults[name] == nil and name ~= "filetypes" then
            error(("calomel: unknown option %q"):format(name), 0)
        end
    end
    for name in pairs(type(options.keys) == "table" and options.keys or {}) do
        if M.defaults.keys[name] == nil then
            error(("calomel: unknown key %q; known are %s"):format(name, M.key_names()), 0)
        end
    end
    local merged = vim.tbl_deep_extend("force", M.defaults, options)
    if options.keys == false then
        merged.keys = vim.tbl_map(function()
            return false
        end, M.defaults.keys)
    end
    -- Lists replace each other instead of being merged.
    merged.cmd = options.cmd or require("calomel.install").command()
    merged.root_markers = options.root_markers or merged.root_markers

    vim.validate("cmd", merged.cmd, function(value)
        return type(value) == "function" or (strings(value) and #value > 0)
    end, "list of strings that begins with a program")
    vim.validate("filetypes", merged.filetypes, function(value)
        return value == nil or strings(value)
    end, "list of strings")
    vim.validate("root_markers", merged.root_markers, strings, "list of strings")
    vim.validate("settings", merged.settings, "table")
    for name, value in pairs(merged.keys) do
        vim.validate("keys." .. name, value, key_or_false, "key, or false for none")
    end
    vim.validate("ghost_text", merged.ghost_text, function(value)
        return value == "own" or value == "builtin" or value == false
    end, '"own", "builtin" or false')
    vim.validate("next_edit", merged.next_edit, "boolean")
    vim.validate("tab_indents", merged.tab_indents, "boolean")
    vim.validate("hint", merged.hint, "boolean")
    vim.validate("with_menu", merged.with_menu, "boolean")
    vim.validate("debounce_ms", merged.debounce_ms, "number")
    local choice = kept_choice(options)
    if choice then
        merged.settings = with_choice(merged.settings, choice)
    end
    M.current, M.given = merged, options
end

--- Whether `accept` is a key that would do something to the line without this plugin.
---@return boolean
function M.accepts_by_tab()
    local key = M.current.keys.accept
    return key and vim.keycode(key) == "\t" or false
end

---@return string
function M.key_names()
    local names = vim.tbl_keys(M.defaults.keys)
    table.sort(names)
    return table.concat(names, ", ")
end

--- Neovim's own inline completion shows the ghost text.
---@return boolean
function M.builtin()
    return M.current.ghost_text == "builtin" and vim.lsp.inline_completion and true or false
end

--- This plugin shows it.
---@return boolean
function M.own()
    return M.current.ghost_text ~= false and not M.builtin()
end

return M
