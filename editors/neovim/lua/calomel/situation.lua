--- Where the user is, and whether the editor's own state forbids suggestions there.

local config = require("calomel.config")

local M = {}

---@return integer row
---@return integer col
function M.cursor()
    local place = vim.api.nvim_win_get_cursor(0)
    return place[1] - 1, place[2]
end

---@return "insert"|"normal"|"other"
function M.mode()
    local name = vim.api.nvim_get_mode().mode
    if name:sub(1, 1) == "i" then
        return "insert"
    end
    return name == "n" and "normal" or "other"
end

--- Tab indents here: nothing but white space stands before the cursor in its line.
---@return boolean
function M.tab_indents()
    if not config.current.tab_indents or M.mode() ~= "insert" then
        return false
    end
    return vim.api.nvim_get_current_line():sub(1, select(2, M.cursor())):match("^%s*$") ~= nil
end

--- Between two characters that are no white space, where nobody types a tab.
---@return boolean
function M.amid()
    local line, col = vim.api.nvim_get_current_line(), select(2, M.cursor())
    return line:sub(col, col):match("%S") ~= nil and line:sub(col + 1, col + 1):match("%S") ~= nil
end

--- Neovim shows a problem where the cursor is.
---@param buf integer
---@return boolean
function M.at_problem(buf)
    local row, col = M.cursor()
    return vim.iter(vim.diagnostic.get(buf)):any(function(each)
        local first, last = { each.lnum, each.col }, { each.end_lnum or each.lnum, each.end_col or each.col }
        local from = row > first[1] or row == first[1] and col >= first[2]
        return from and (row < last[1] or row == last[1] and col <= last[2])
    end)
end

--- What keeps suggestions from the screen, in words.
M.REASONS = {
    not_modifiable = "this buffer is read-only",
    macro = "a macro is being recorded or executed",
    command_line_window = "this is the command-line window",
    popup_menu = "the popup menu is open",
    snippet = "a snippet is being filled in",
}

--- Whether the menu of another plugin is open.
---@param name string Of its module.
---@param asks string[] Its functions that tell, the newest one first.
---@return boolean
local function shows_menu(name, asks)
    local plugin = package.loaded[name]
    for _, ask in ipairs(type(plugin) == "table" and asks or {}) do
        local known, answer = pcall(function()
            return plugin[ask]()
        end)
        if known then
            return answer == true
        end
    end
    return false
end

--- Whether a menu of completions is open, which Tab belongs to then: Neovim's own, or that of nvim-cmp or blink.cmp.
---@return boolean
function M.menu()
    return vim.fn.pumvisible() == 1
        or shows_menu("cmp", { "visible" })
        or shows_menu("blink.cmp", { "is_menu_visible", "is_visible" })
end

--- Whether Tab goes on in a snippet: Neovim's own, or one of LuaSnip or mini.snippets.
---@return boolean
function M.snippet()
    local function is(ask)
        local known, answer = pcall(ask)
        return known and answer == true
    end
    return vim.snippet.active({ direction = 1 })
        or package.loaded["luasnip"] ~= nil and is(function()
            return package.loaded["luasnip"].locally_jumpable(1)
        end)
        or _G.MiniSnippets ~= nil and is(function()
            return _G.MiniSnippets.session.get() ~= nil
        end)
end

--- Whether the popup menu leaves no room for ghost text.
---@return boolean
function M.covered()
    return not config.current.with_menu and vim.fn.pumvisible() == 1
end

--- Why nothing may be shown in this buffer now, whatever the server thinks.
---@param buf integer
---@return string?
function M.blocked(buf)
    if not vim.bo[buf].modifiable then
        return "not_modifiable"
    elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
        -- A macro that took a suggestion would do something else the next time.
        return "macro"
    elseif vim.fn.getcmdwintype() ~= "" then
        return "command_line_window"
    elseif vim.fn.pumvisible() == 1 then
        -- An entry that is selected may stand in the text before anybody has decided for it.
        return vim.fn.complete_info({ "selected" }).selected >= 0 and "popup_menu" or nil
    elseif M.mode() == "insert" and vim.snippet.active({ direction = 1 }) then
        return "snippet"
    end
    return nil
end

-- Reasons that the model's state says, and what is said with it.
local AWAY = { no_model = "the model is away.", loading = "the model is loading." }

--- Why nothing is shown, in sentences.
---@param text calomel.Silence? Why there is no completion, where that was asked for.
---@param edit calomel.Silence Why there is no next edit.
---@param brief boolean? The model's state is said, too.
---@return string
function M.why(text, edit, brief)
    local away = AWAY[edit.reason]
    if text and text.message ~= edit.message and not (away and AWAY[text.reason]) then
        return ("No completion: %s No next edit: %s"):format(text.message, edit.message)
    end
    return "Nothing shown: " .. (brief and away or edit.message)
end

return M
