--- Keys that take a suggestion when there is one, and otherwise do what they do without this plugin.

local actions = require("calomel.action")
local config = require("calomel.config")
local situation = require("calomel.situation")

local M = {}

---@class calomel.OwnKey
---@field mode string
---@field lhs string
---@field before table What the buffer itself had mapped there, or an empty table.

---@type table<integer, calomel.OwnKey[]>
local own = {}

---@param keys string
---@return string
local function codes(keys)
    return vim.api.nvim_replace_termcodes(keys, true, true, true)
end

--- The mapping of all buffers for a key.
---@param mode string
---@param lhs string
---@return table?
local function global_mapping(mode, lhs)
    local raw = codes(lhs)
    for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
        if map.lhsraw == raw or map.lhsrawalt == raw then
            return map
        end
    end
    return nil
end

--- Take the suggestion, as Tab does.
function M.tab()
    actions.accept()
    actions.tab_took()
end

-- Mappings without <expr> that call Lua are not run within ours, where text can not be changed.
local waiting = nil

--- Run what another mapping put off.
function M.run_waiting()
    local callback = waiting
    waiting = nil
    if callback then
        callback()
    end
end

--- What a mapping gives, as keys.
---@param map table?
---@param lhs string
---@return string
local function result_of(map, lhs)
    if not map or map.rhs == "" then
        return map and "" or codes(lhs)
    end
    local keys
    if map.expr == 1 then
        if map.callback then
            keys = map.callback()
            keys = type(keys) == "string" and keys or ""
        else
            keys = vim.api.nvim_eval((map.rhs:gsub("<[sS][iI][dD]>", ("<SNR>%d_"):format(map.sid))))
        end
        if map.replace_keycodes == 1 then
            keys = codes(keys)
        end
    elseif map.callback then
        waiting = map.callback
        return codes("<Cmd>lua require('calomel.keys').run_waiting()<CR>")
    else
        keys = codes((map.rhs:gsub("<[sS][iI][dD]>", ("<SNR>%d_"):format(map.sid))))
    end
    if map.noremap == 1 then
        return keys
    end
    -- Ours is not remapped, so that these keys take another way; in front of what was typed meanwhile.
    vim.api.nvim_feedkeys(keys, "im", false)
    return ""
end

---@param key calomel.OwnKey
---@param buf integer
---@return string
local function fall_through(key, buf)
    local map = key.before
    if vim.tbl_isempty(map) then
        map = global_mapping(key.mode, key.lhs)
    end
    if not map and key.mode == "i" and vim.fn.keytrans(codes(key.lhs)):match("^<M%-") then
        -- Given back by a mapping, it would type its character.
        return ""
    end
    local keys = result_of(map, key.lhs)
    -- A tab there was pressed for what comes in a moment: then it is shown.
    return keys == "\t" and key.mode == "i" and actions.awaits(buf) and "" or keys
end

---@param buf integer
---@param mode string
---@param lhs string
---@param action string
local function map_key(buf, mode, lhs, action)
    ---@type calomel.OwnKey
    local key = { mode = mode, lhs = lhs, before = {} }
    vim.api.nvim_buf_call(buf, function()
        local before = vim.fn.maparg(lhs, mode, false, true)
        key.before = before.buffer == 1 and before or {}
    end)
    table.insert(own[buf], key)
    local accepts = action == "accept" or action == "accept_always"
    local is_tab = action == "accept" and config.accepts_by_tab()
    local run = is_tab and "calomel.keys').tab()" or ("calomel').%s()"):format(accepts and "accept" or action)
    local call = codes(("<Cmd>lua require('%s<CR>"):format(run))
    -- Taking a suggestion is an undo step of its own, and what is typed behind it another one.
    local step = mode == "i" and action:find("accept") and codes("<C-g>u") or ""
    vim.keymap.set(mode, lhs, function()
        if action == "suggest" then
            return call
        end
        if is_tab and actions.takes_tab(buf) or not is_tab and actions.ready(action, buf) then
            -- The menu would go on in a text that is no longer there.
            local close = mode == "i" and vim.fn.pumvisible() == 1 and codes("<C-e>") or ""
            return close .. step .. call .. step
        end
        local builtin = accepts and mode == "i" and config.builtin() and not (is_tab and situation.tab_indents())
        if builtin and vim.lsp.inline_completion.get({ bufnr = buf }) then
            if is_tab then
                vim.schedule(actions.tab_took)
            end
            return ""
        elseif is_tab and actions.is_surplus() then
            return ""
        end
        return fall_through(key, buf)
    end, { buffer = buf, expr = true, replace_keycodes = false, desc = "Calomel: " .. action:gsub("_", " ") })
end

--- What is done with text at the cursor alone.
M.OF_TEXT = { accept_word = true, accept_line = true, next = true, previous = true }

--- Map the keys in a buffer.
---@param buf integer
function M.attach(buf)
    if own[buf] then
        return
    end
    own[buf] = {}
    for action, lhs in pairs(config.current.keys) do
        if lhs then
            map_key(buf, "i", lhs, action)
            -- Beyond Insert mode there are only next edits, which are taken as a whole.
            if config.current.next_edit and not M.OF_TEXT[action] then
                map_key(buf, "n", lhs, action)
            end
        end
    end
end

--- Give the keys of a buffer back.
---@param buf integer
function M.detach(buf)
    local keys = own[buf]
    own[buf] = nil
    if not keys or not vim.api.nvim_buf_is_valid(buf) then
        return
    end
    vim.api.nvim_buf_call(buf, function()
        for _, key in ipairs(keys) do
            pcall(vim.keymap.del, key.mode, key.lhs, { buffer = buf })
            if not vim.tbl_isempty(key.before) then
                vim.fn.mapset(key.mode, false, key.before)
            end
        end
    end)
end

return M
