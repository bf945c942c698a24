--- The suggestion that a buffer shows: putting it there, taking it away, and telling the server of both.

local config = require("calomel.config")
local render = require("calomel.render")
local server = require("calomel.server")
local situation = require("calomel.situation")
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
    state.offered, state.chosen, state.marked, state.said = nil, nil, nil, nil
    render.clear(state.buf)
end

--- Show no more than a sign that there is a suggestion for a row: the user asks for it.
---@param state calomel.State
---@param row integer
function M.mark(state, row)
    M.ignore(state, "replaced")
    state.marked = true
    render.sign(state.buf, row)
end

-- A sentence, or a word, is read in less.
local SAID_MS, DONE_MS = 6000, 1500

--- Say something at the cursor for a moment, until the user goes on.
---@param state calomel.State
---@param what string
---@param ms integer?
function M.say(state, what, ms)
    M.hide(state)
    state.marked = true
    render.say(state.buf, state.row, what)
    local mine = vim.uv.hrtime()
    state.said = mine
    vim.defer_fn(function()
        if state.said == mine and state.marked then
            M.hide(state)
        end
    end, ms or SAID_MS)
end

--- Say that what was counted is all accepted.
---@param state calomel.State
function M.say_done(state)
    M.say(state, "done", DONE_MS)
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
    local far = s.elsewhere or suggestion.rows_away(s, row) > suggestion.JUMP_ROWS or not in_window(s)
    return s.kind == "edit" and far
end

--- The user saw this edit and typed on.
---@param state calomel.State
---@return boolean
local function is_passed(state)
    local s, passed = state.shown, state.passed
    return s ~= nil and passed ~= nil and passed.removed == s.removed and passed.new == s.new
end

--- Whether Tab takes what is shown. In Insert mode it is the menu's where one is open, indents where a line begins, and
--- goes to no edit elsewhere that the user types past.
---@param state calomel.State
---@return boolean
function M.takes_tab(state)
    if situation.mode() == "insert" and situation.menu() then
        return false
    end
    local there = state.arrived
    if there and there.tick == state.tick and there.row == state.row and there.col == state.col then
        -- The first key press went here; the second one takes it, though a line may begin.
        return true
    end
    local goes_on = config.current.tab_indents and situation.mode() == "insert" and is_passed(state)
    return not situation.tab_indents() and not (goes_on and M.is_far(state.shown, state.row))
end

---@param state calomel.State
local function tell_shown(state)
    local s = state.shown
    local client = server.client(state.buf)
    if not s or s.told or s.elsewhere or not client or not in_window(s) then
        return
    end
    s.told = true
    local method = s.kind == "fill" and "textDocument/didShowCompletion" or "textDocument/didShowInlineEdit"
    client:notify(method, { item = s.item })
end

--- What is said of the key that takes it now, and where.
---@param state calomel.State
---@return {row: integer, text: string}?
local function hint(state)
    local function counted(said)
        local chain, all = state.shown.chain, config.current.keys.accept_all
        if chain then
            said = ("%s · %d of %d"):format(said, chain.index, chain.total)
        end
        return chain and all and #state.shown.rest > 0 and ("%s · %s: all"):format(said, all) or said
    end
    local s, row, key = state.shown, state.row, config.current.keys.accept
    local yields = config.accepts_by_tab() and not M.takes_tab(state)
    if config.current.hint and state.chosen and #state.offered > 1 then
        return { row = row, text = ("%d/%d"):format(state.chosen, #state.offered) }
    end
    if not config.current.hint or (s.kind == "fill" and not yields) then
        return nil
    end
    if yields then
        key = config.current.keys.accept_always
    end
    local first = suggestion.rows(s)
    -- A menu covers what stands below the cursor.
    local covered = state.menu and s.kind == "edit" and first ~= row
    if covered or M.is_far(s, row) then
        if not covered and situation.mode() == "insert" and is_passed(state) then
            return nil
        end
        local what = ("edit on line %d %s"):format(first + 1, first > row and "↓" or "↑")
        if s.elsewhere then
            what = ("edit in %s:%d"):format(vim.fs.basename(vim.api.nvim_buf_get_name(s.buf)), first + 1)
        end
        return { row = row, text = counted(key and ("%s: %s"):format(key, what) or what) }
    end
    return key and not state.stale and { row = first, text = counted(key) } or nil
end

---@param state calomel.State
function M.draw(state)
    local s = state.shown
    if not s then
        return
    end
    if s.ghost then
        render.ghost(state.buf, s.row, s.col, s.text, hint(state))
    else
        render.edit(state.buf, s.elsewhere and {} or s.hunks, hint(state))
    end
    if not s.told then
        vim.defer_fn(function()
            if state.shown == s then
                tell_shown(state)
            end
        end, DRAWN_MS)
    end
end

--- From now on the buffer that an edit is of shows it, and the user looks there. False: it no longer holds.
---@param state calomel.State
---@param there calomel.State?
---@return boolean
function M.hand_over(state, there)
    local s = assert(state.shown)
    if not there or not suggestion.follow(s, 0, 0) then
        M.ignore(state, "stale")
        return false
    end
    state.shown = nil
    render.clear(state.buf)
    local window = vim.fn.bufwinid(s.buf)
    if window == -1 then
        vim.api.nvim_win_set_buf(0, s.buf)
    else
        vim.api.nvim_set_current_win(window)
    end
    M.ignore(there, "replaced")
    s.elsewhere, s.distance = nil, 0
    there.shown, there.stale = s, state.stale
    return true
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
    same = same and not state.stale
    state.shown, state.stale, state.marked = s, false, nil
    if not same then
        M.draw(state)
    end
end

--- Which of several texts for the cursor is shown; 1 where none is.
---@param state calomel.State
---@param offered calomel.Suggestion[]
---@return integer
local function place_of(state, offered)
    for at, s in ipairs(offered) do
        if state.shown and s.id == state.shown.id then
            return at
        end
    end
    return 1
end

--- Show one of several texts for the cursor: the one that the user turned to, else the first.
---@param state calomel.State
---@param offered calomel.Suggestion[]
function M.offer(state, offered)
    local at = state.chosen and place_of(state, offered) or 1
    local chosen = at > 1 and at or nil
    M.show(state, offered[at])
    state.offered, state.chosen = offered, chosen
    if chosen then
        M.draw(state)
    end
end

--- Show the next of several texts for the cursor, or the one before. False: there is no other.
---@param state calomel.State
---@param step integer
---@return boolean
function M.turn(state, step)
    local offered = state.offered or {}
    local at = (place_of(state, offered) - 1 + step) % math.max(#offered, 1) + 1
    -- What was typed since has shortened the one alone that is shown; the next answer has them all.
    local s = offered[at]
    if #offered < 2 or s.row ~= state.row or s.col ~= state.col then
        return false
    end
    state.chosen = at
    M.show(state, s)
    return true
end

return M
