--- What the keys do with the suggestion of a buffer.

local buffer = require("calomel.buffer")
local display = require("calomel.display")
local question = require("calomel.question")
local server = require("calomel.server")
local situation = require("calomel.situation")
local suggestion = require("calomel.suggestion")
local text = require("calomel.text")

local M = {}

--- Whether a key has something to do now; if not, it does what it does without this plugin.
---@param action "accept"|"accept_always"|"accept_all"|"accept_word"|"accept_line"|"dismiss"|"next"|"previous"
---@param buf integer?
---@return boolean
function M.ready(action, buf)
    local state = buffer.state(buf)
    if state then
        -- Keys that came in one go: what was typed just now has no event yet.
        buffer.update(state.buf)
    end
    local s = state and state.shown
    if not s or situation.blocked(s.buf) then
        return false
    end
    local where = situation.mode()
    if s.kind == "fill" then
        if action == "accept_all" then
            return false
        end
        local others = state.offered and #state.offered > 1
        return where == "insert" and (others or action ~= "next" and action ~= "previous")
    end
    local whole = action == "accept" or action == "accept_always" or action == "accept_all"
    return where ~= "other" and (whole or action == "dismiss")
end

--- Whether Tab takes a suggestion here, where it could indent as well.
---@param buf integer?
---@return boolean
function M.takes_tab(buf)
    local state = buffer.state(buf)
    return state ~= nil and M.ready("accept", state.buf) and display.takes_tab(state)
end

--- Whether the server is being asked while the cursor stands where nobody types a tab.
---@param buf integer?
---@return boolean
function M.awaits(buf)
    local state = buffer.state(buf)
    return state ~= nil and not state.shown and (state.due or state.pending ~= nil) and situation.amid()
end

--- Put text in at the cursor as if it were pasted, so that `.` repeats it with what was typed.
---@param insertion string
local function put(insertion)
    vim.api.nvim_paste(insertion, false, -1)
end

--- Go to the edit.
---@param state calomel.State
local function jump(state)
    local s = assert(state.shown)
    state.passed = nil
    vim.cmd("normal! m'")
    if s.elsewhere then
        local there = buffer.state(s.buf)
        if not display.hand_over(state, there) then
            return
        end
        state = assert(there)
    end
    local row, col = suggestion.start(s)
    vim.api.nvim_win_set_cursor(0, { row + 1, col })
    vim.cmd("silent! normal! zv")
    state.row, state.col = situation.cursor()
    state.arrived = { tick = state.tick, row = state.row, col = state.col }
    display.draw(state)
end

--- Take the suggestion; of an edit far away only go there.
---@param buf integer?
---@return boolean done False: there was none.
function M.accept(buf)
    local state = buffer.state(buf)
    if not state or not M.ready("accept", state.buf) then
        return false
    end
    local s = assert(state.shown)
    if display.is_far(s, state.row) then
        jump(state)
        return true
    end
    buffer.cancel(state)
    display.hide(state)
    if state.stale then
        -- It is as old as the text before the last keys.
        question.ask(state, question.AUTOMATIC)
        return true
    elseif s.ghost then
        put(s.text)
    else
        local row, col = suggestion.apply(s, false)
        vim.api.nvim_win_set_cursor(0, { row + 1, col })
    end
    display.tell(state, "accept", s.id)
    buffer.update(state.buf)
    if s.chain and s.chain.index < s.chain.total then
        buffer.cancel(state)
        question.follow(state)
    elseif s.chain then
        state.finished = state.tick
    end
    return true
end

-- One more Tab within this time was pressed for a suggestion, not for blanks.
local SURPLUS_MS = 400
---@type number? In ms.
local taken = nil
local keys = vim.api.nvim_create_namespace("calomel.keys")

--- Tab has taken a suggestion, or gone to one.
function M.tab_took()
    taken = vim.uv.hrtime() / 1e6
    vim.on_key(function(_, typed)
        if typed ~= "" and typed ~= "\t" then
            taken = nil
            vim.on_key(nil, keys)
        end
    end, keys)
end

--- Whether a Tab that has nothing to take follows so closely on one that had that it was pressed for the same: no other
--- key came between, and no menu or snippet wants it.
---@return boolean
function M.is_surplus()
    local soon = taken ~= nil and vim.uv.hrtime() / 1e6 - taken <= SURPLUS_MS
    return soon and not situation.menu() and not situation.snippet()
end

--- Take the edit with all that follow from the same answer, as one step; the cursor goes to none that is far away.
---@param buf integer?
---@return boolean
function M.accept_all(buf)
    local state = buffer.state(buf)
    if not state or not M.ready("accept_all", state.buf) then
        return false
    end
    local s = assert(state.shown)
    if s.elsewhere or #s.rest == 0 then
        return M.accept(state.buf)
    end
    local far = display.is_far(s, state.row)
    buffer.cancel(state)
    display.hide(state)
    local row, col = suggestion.apply(s, true)
    if not far then
        vim.api.nvim_win_set_cursor(0, { row + 1, col })
    end
    display.tell(state, "accept", s.id, "all")
    buffer.update(state.buf)
    return true
end

---@param buf integer?
---@param action "accept_word"|"accept_line"
---@param piece_of fun(text: string): string
---@return boolean
local function accept_piece(buf, action, piece_of)
    local state = buffer.state(buf)
    if not state or not M.ready(action, state.buf) then
        return false
    end
    local s = assert(state.shown)
    local piece = s.ghost and piece_of(s.text) or ""
    if not s.ghost or piece == s.text then
        return M.accept(state.buf)
    end
    local length = suggestion.accepted_length(s, piece)
    put(piece)
    -- What was put in agrees with the rest, as if it had been typed.
    buffer.update(state.buf)
    local client = server.client(state.buf)
    if client then
        client:notify("textDocument/didPartiallyAcceptCompletion", { item = s.item, acceptedLength = length })
    end
    return true
end

--- Take the next word of ghost text.
---@param buf integer?
---@return boolean
function M.accept_word(buf)
    return accept_piece(buf, "accept_word", text.first_word)
end

--- Take the next line of ghost text.
---@param buf integer?
---@return boolean
function M.accept_line(buf)
    return accept_piece(buf, "accept_line", text.first_line)
end

--- Reject the suggestion: it does not come back before the text around it has changed.
---@param buf integer?
---@return boolean
function M.dismiss(buf)
    local state = buffer.state(buf)
    if not state or not M.ready("dismiss", state.buf) then
        return false
    end
    buffer.cancel(state)
    local s = state.shown
    display.hide(state)
    display.tell(state, "reject", s.id)
    return true
end

--- Show another text for the cursor in the place of the one that is shown.
---@param step integer 1 for the next one, -1 for the one before.
---@param buf integer?
---@return boolean done False: there is no other.
function M.turn(step, buf)
    local state = buffer.state(buf)
    return state ~= nil and M.ready("next", state.buf) and display.turn(state, step)
end

--- Ask now, and do not hold back what was rejected or is unsure.
---@param buf integer?
---@return boolean
function M.suggest(buf)
    return buffer.ask(buf)
end

return M
