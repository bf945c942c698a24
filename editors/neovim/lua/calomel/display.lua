--- The suggestion that a buffer shows: putting it there, taking it away, and telling the server of both.

local config = require("calomel.config")
local render = require("calomel.render")
local server = require("calomel.server")
local suggestion = require("calomel.suggestion")

local M = {}

-- Neovim has drawn what was set by then.
local DRAWN_MS = 10

---@param state calomel.State
---@param command string
---@param ... any
function M.tell(state, command, ...)
    local client = server.client(state.buf)
    if client then
        server.execute(client, command, { ... })
    end
end

---@param state calomel.State
function M.hide(state)
    if state.shown then
        suggestion.release(state.shown)
        state.shown = nil
    end
    render.clear(state.buf)
end

--- Hide it, and tell the server that the user did not decide about it.
---@param state calomel.State
---@param reason string
function M.ignore(state, reason)
    local s = state.shown
    if s then
        M.hide(state)
        M.tell(state, "ignore", s.id, reason)
    end
end

---@param s calomel.Suggestion
---@return boolean
local function in_window(s)
    local first = suggestion.rows(s)
    return first + 1 >= vim.fn.line("w0") and first + 1 <= vim.fn.line("w$")
end

--- The next key press goes to the edit before another one takes it.
---@param s calomel.Suggestion
---@param row integer Of the cursor.
---@return boolean
function M.is_far(s, row)
    return s.kind == "edit" and (suggestion.rows_away(s, row) > suggestion.JUMP_ROWS or not in_window(s))
end

---@param state calomel.State
local function tell_shown(state)
    local s = state.shown
    local client = server.client(state.buf)
    if not s or s.told or not client or not in_window(s) then
        return
    end
    s.told = true
    local method = s.kind == "fill" and "textDocument/didShowCompletion" or "textDocument/didShowInlineEdit"
    client:notify(method, { item = s.item })
end

---@param s calomel.Suggestion
---@param row integer Of the cursor.
---@return {row: integer, text: string}?
local function hint(s, row)
    local key = config.current.keys.accept
    if not config.current.hint or s.kind == "fill" then
        return nil
    end
    local first = suggestion.rows(s)
    if M.is_far(s, row) then
        local what = ("edit on line %d %s"):format(first + 1, first > row and "↓" or "↑")
        return { row = row, text = key and ("%s: %s"):format(key, what) or what }
    end
    return key and { row = first, text = key } or nil
end

---@param state calomel.State
function M.draw(state)
    local s = state.shown
    if not s then
        return
    end
    if s.ghost then
        render.ghost(state.buf, s.row, s.col, s.text)
    else
        render.edit(state.buf, s.hunks, hint(s, state.row))
    end
    if not s.told then
        vim.defer_fn(function()
            if state.shown == s then
                tell_shown(state)
            end
        end, DRAWN_MS)
    end
end

--- Show a suggestion in the place of what is shown.
---@param state calomel.State
---@param s calomel.Suggestion
function M.show(state, s)
    local before = state.shown
    if before and before.id == s.id then
        s.told, s.distance = before.told, before.distance
    elseif before and before.kind ~= s.kind then
        M.ignore(state, "replaced")
        before = nil
    end
    local same = before ~= nil and suggestion.same(before, s)
    if before then
        suggestion.release(before)
    end
    state.shown = s
    if not same then
        M.draw(state)
    end
end

return M
