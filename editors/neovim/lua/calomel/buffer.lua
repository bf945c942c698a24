--- What goes on in one buffer: when to ask, what to show, what a key does, and what the server hears of it.

local config = require("calomel.config")
local render = require("calomel.render")
local server = require("calomel.server")
local suggestion = require("calomel.suggestion")
local text = require("calomel.text")

local M = {}

-- A cursor that moves tells of a next edit only for so long after an edit; the server's rule for ghost text.
local AFTER_EDIT_MS = 10000
-- Moving through a file is no question.
local MOVE_MS = 100
-- Rows beyond those at which an edit was shown; further away the user is busy elsewhere.
local PATIENT_ROWS = 5
-- Neovim has drawn what was set by then.
local DRAWN_MS = 10

local INVOKED, AUTOMATIC = 1, 2

---@class calomel.Pending
---@field id integer?
---@field client vim.lsp.Client

---@class calomel.State
---@field buf integer
---@field tick integer
---@field row integer
---@field col integer
---@field edited number When the text changed last, in ms.
---@field shown calomel.Suggestion?
---@field pending calomel.Pending?
---@field timer uv.uv_timer_t
---@field blocked string? Why the editor's own state forbade a question last.

---@type table<integer, calomel.State>
local states = {}

---@param buf integer?
---@return calomel.State?
local function state_of(buf)
    return states[(buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf]
end

---@return integer row
---@return integer col
local function cursor()
    local place = vim.api.nvim_win_get_cursor(0)
    return place[1] - 1, place[2]
end

---@return "insert"|"normal"|"other"
local function mode()
    local name = vim.api.nvim_get_mode().mode
    if name:sub(1, 1) == "i" then
        return "insert"
    end
    return name == "n" and "normal" or "other"
end

--- Why nothing may be shown in this buffer now, whatever the server thinks.
---@param buf integer
---@return string?
local function blocked(buf)
    if not vim.bo[buf].modifiable then
        return "not_modifiable"
    elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
        -- A macro that took a suggestion would do something else the next time.
        return "macro"
    elseif vim.fn.getcmdwintype() ~= "" then
        return "command_line_window"
    elseif vim.fn.pumvisible() == 1 then
        if not config.current.with_menu or vim.fn.complete_info({ "selected" }).selected >= 0 then
            return "popup_menu"
        end
    elseif mode() == "insert" and vim.snippet.active({ direction = 1 }) then
        return "snippet"
    end
    return nil
end

---@param state calomel.State
local function cancel(state)
    local pending = state.pending
    state.pending = nil
    state.timer:stop()
    if pending and pending.id and pending.client.requests[pending.id] then
        pending.client:cancel_request(pending.id)
    end
end

---@param state calomel.State
local function hide(state)
    if state.shown then
        suggestion.release(state.shown)
        state.shown = nil
    end
    render.clear(state.buf)
end

---@param state calomel.State
---@param command string
---@param ... any
local function tell(state, command, ...)
    local client = server.client(state.buf)
    if client then
        server.execute(client, command, { ... })
    end
end

--- Hide it, and tell the server that the user did not decide about it.
---@param state calomel.State
---@param reason string
local function ignore(state, reason)
    local s = state.shown
    if s then
        hide(state)
        tell(state, "ignore", s.id, reason)
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
local function is_far(s, row)
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
    if is_far(s, row) then
        local what = ("edit on line %d %s"):format(first + 1, first > row and "↓" or "↑")
        return { row = row, text = key and ("%s: %s"):format(key, what) or what }
    end
    return key and { row = first, text = key } or nil
end

---@param state calomel.State
local function draw(state)
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

---@param state calomel.State
---@param s calomel.Suggestion
local function show(state, s)
    local before = state.shown
    if before and before.id == s.id then
        s.told, s.distance = before.told, before.distance
    elseif before and before.kind ~= s.kind then
        ignore(state, "replaced")
        before = nil
    end
    local same = before ~= nil and suggestion.same(before, s)
    if before then
        suggestion.release(before)
    end
    state.shown = s
    if not same then
        draw(state)
    end
end

---@param state calomel.State
---@param method string
---@param params table
---@param done fun(result: any)
local function request(state, method, params, done)
    local client = server.client(state.buf)
    if not client then
        return
    end
    local tick, row, col = state.tick, state.row, state.col
    local before = state.pending
    ---@type calomel.Pending
    local pending = { client = client }
    state.pending = pending
    local _, id = client:request(method, params, function(err, result)
        if state.pending ~= pending then
            return
        end
        state.pending = nil
        -- An answer about another text is worth nothing.
        local fresh = vim.api.nvim_get_current_buf() == state.buf
            and vim.api.nvim_buf_get_changedtick(state.buf) == tick
        local here_row, here_col = cursor()
        if not err and fresh and here_row == row and here_col == col and not blocked(state.buf) then
            done(type(result) == "table" and result or nil)
        end
    end, state.buf)
    pending.id = id
    -- Behind the new question: a server that knows of it can go on with what it computes for the old one.
    if before and before.id and before.client.requests[before.id] then
        before.client:cancel_request(before.id)
    end
end

---@param state calomel.State
---@param kind integer
local function ask_edit(state, kind)
    local version = vim.lsp.util.buf_versions[state.buf]
    local params = {
        textDocument = { uri = vim.uri_from_bufnr(state.buf), version = version },
        position = text.position(state.buf, state.row, state.col),
        context = { triggerKind = kind },
    }
    request(state, "textDocument/copilotInlineEdit", params, function(result)
        local item = result and type(result.edits) == "table" and result.edits[1]
        local named = item and item.textDocument and item.textDocument.version
        local s = item
            and (named == nil or named == version)
            and suggestion.edit(state.buf, item, state.row, state.col)
        if s then
            show(state, s)
        elseif state.shown and state.shown.kind == "edit" then
            hide(state)
        end
    end)
end

---@param state calomel.State
---@param kind integer
local function ask_fill(state, kind)
    local params = {
        textDocument = { uri = vim.uri_from_bufnr(state.buf) },
        position = text.position(state.buf, state.row, state.col),
        context = { triggerKind = kind },
    }
    request(state, "textDocument/inlineCompletion", params, function(result)
        local item = result and (result.items or result)[1]
        local s = item and mode() == "insert" and suggestion.fill(state.buf, item, state.row, state.col)
        if s then
            show(state, s)
            return
        end
        if state.shown and state.shown.kind == "fill" then
            hide(state)
        end
        if config.current.next_edit then
            ask_edit(state, kind)
        end
    end)
end

---@param state calomel.State
---@param kind integer
local function ask(state, kind)
    if vim.api.nvim_get_current_buf() ~= state.buf then
        return
    end
    state.blocked = blocked(state.buf)
    state.tick = vim.api.nvim_buf_get_changedtick(state.buf)
    state.row, state.col = cursor()
    local where = mode()
    if state.blocked or where == "other" then
        return
    end
    if where == "insert" and config.own() then
        ask_fill(state, kind)
    elseif config.current.next_edit then
        ask_edit(state, kind)
    end
end

---@param state calomel.State
---@param delay integer
local function ask_soon(state, delay)
    state.timer:stop()
    state.timer:start(delay, 0, function()
        vim.schedule(function()
            if states[state.buf] == state then
                ask(state, AUTOMATIC)
            end
        end)
    end)
end

---@param state calomel.State
local function changed(state)
    state.edited = vim.uv.now()
    local s = state.shown
    if s then
        if suggestion.follow(s, state.row, state.col) then
            draw(state)
        else
            -- The server sees from the text what became of it.
            hide(state)
        end
    end
    ask_soon(state, config.current.debounce_ms)
end

---@param state calomel.State
---@param row_before integer
local function moved(state, row_before)
    local s = state.shown
    if s and s.kind == "fill" then
        if s.row ~= state.row or s.col ~= state.col then
            ignore(state, "moved_away")
        end
    elseif s then
        if suggestion.rows_away(s, state.row) > s.distance + PATIENT_ROWS then
            ignore(state, "moved_away")
        else
            draw(state)
            return
        end
    end
    local recently = vim.uv.now() - state.edited < AFTER_EDIT_MS
    if mode() == "insert" then
        ask_soon(state, config.current.debounce_ms)
    elseif recently and state.row ~= row_before then
        ask_soon(state, MOVE_MS)
    end
end

--- Something happened: find out what, and do what follows. Harmless when nothing did.
---@param buf integer
function M.update(buf)
    local state = states[buf]
    if not state or vim.api.nvim_get_current_buf() ~= buf then
        return
    end
    local tick, row_before, col_before = state.tick, state.row, state.col
    state.tick = vim.api.nvim_buf_get_changedtick(buf)
    state.row, state.col = cursor()
    state.blocked = blocked(buf)
    if state.blocked then
        cancel(state)
        ignore(state, state.blocked)
    elseif state.tick ~= tick then
        changed(state)
    elseif state.row ~= row_before or state.col ~= col_before then
        moved(state, row_before)
    end
end

---@param buf integer
local function left_insert(buf)
    local state = states[buf]
    if not state then
        return
    end
    M.update(buf)
    cancel(state)
    if state.shown and state.shown.kind == "fill" then
        ignore(state, "left_insert_mode")
    end
    if not state.shown and vim.uv.now() - state.edited < AFTER_EDIT_MS then
        ask_soon(state, config.current.debounce_ms)
    end
end

---@param buf integer
local function left_buffer(buf)
    local state = states[buf]
    if state then
        cancel(state)
        ignore(state, "left_buffer")
    end
end

---@param buf integer
local function entered(buf)
    local state, client = states[buf], server.client(buf)
    if state and client then
        state.tick = vim.api.nvim_buf_get_changedtick(buf)
        state.row, state.col = cursor()
        client:notify("textDocument/didFocus", { textDocument = { uri = vim.uri_from_bufnr(buf) } })
    end
end

local function group_of(buf)
    return "calomel.buffer." .. buf
end

--- Begin in a buffer that the server has opened.
---@param buf integer
function M.attach(buf)
    if states[buf] then
        return
    end
    states[buf] = {
        buf = buf,
        tick = vim.api.nvim_buf_get_changedtick(buf),
        row = -1,
        col = -1,
        edited = -AFTER_EDIT_MS,
        timer = assert(vim.uv.new_timer()),
    }
    if vim.api.nvim_get_current_buf() == buf then
        states[buf].row, states[buf].col = cursor()
    end
    local group = vim.api.nvim_create_augroup(group_of(buf), { clear = true })
    local function on(events, done)
        vim.api.nvim_create_autocmd(events, {
            group = group,
            buffer = buf,
            callback = function()
                done(buf)
            end,
        })
    end
    on({ "TextChanged", "TextChangedI", "TextChangedP", "CursorMoved", "CursorMovedI" }, M.update)
    on({ "CompleteChanged", "RecordingEnter" }, function()
        -- The menu and the register are there only behind the event.
        vim.schedule(function()
            M.update(buf)
        end)
    end)
    on({ "InsertEnter", "CompleteDone", "RecordingLeave" }, function()
        local state = states[buf]
        if state and not state.shown then
            ask_soon(state, config.current.debounce_ms)
        end
    end)
    on("InsertLeave", left_insert)
    on({ "BufLeave", "WinLeave" }, left_buffer)
    on({ "BufEnter", "WinEnter" }, entered)
end

--- End in a buffer.
---@param buf integer
function M.detach(buf)
    local state = states[buf]
    if not state then
        return
    end
    states[buf] = nil
    state.timer:stop()
    state.timer:close()
    pcall(vim.api.nvim_del_augroup_by_name, group_of(buf))
    if vim.api.nvim_buf_is_valid(buf) then
        hide(state)
    end
end

--- Whether a key has something to do now; if not, it does what it does without this plugin.
---@param action "accept"|"accept_word"|"accept_line"|"dismiss"
---@param buf integer?
---@return boolean
function M.ready(action, buf)
    local state = state_of(buf)
    local s = state and state.shown
    if not s or blocked(s.buf) then
        return false
    end
    local where = mode()
    if s.kind == "fill" then
        return where == "insert"
    end
    return where ~= "other" and (action == "accept" or action == "dismiss")
end

--- Put text in at the cursor as if it were pasted, so that `.` repeats it with what was typed.
---@param insertion string
local function put(insertion)
    vim.api.nvim_paste(insertion, false, -1)
end

--- Go to the edit.
---@param state calomel.State
local function jump(state)
    local row, col = suggestion.start(state.shown)
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { row + 1, col })
    vim.cmd("silent! normal! zv")
    state.row, state.col = cursor()
    draw(state)
end

--- Take the suggestion; of an edit far away only go there.
---@param buf integer?
---@return boolean done False: there was none.
function M.accept(buf)
    local state = state_of(buf)
    if not state or not M.ready("accept", state.buf) then
        return false
    end
    local s = assert(state.shown)
    if is_far(s, state.row) then
        jump(state)
        return true
    end
    cancel(state)
    hide(state)
    if s.ghost then
        put(s.text)
    else
        local row, col = text.apply(state.buf, s.hunks)
        vim.api.nvim_win_set_cursor(0, { row + 1, col })
    end
    tell(state, "accept", s.id)
    M.update(state.buf)
    return true
end

---@param buf integer?
---@param action "accept_word"|"accept_line"
---@param piece_of fun(text: string): string
---@return boolean
local function accept_piece(buf, action, piece_of)
    local state = state_of(buf)
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
    M.update(state.buf)
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
    local state = state_of(buf)
    if not state or not state.shown then
        return false
    end
    cancel(state)
    local s = state.shown
    hide(state)
    tell(state, "reject", s.id)
    return true
end

--- Ask now, and do not hold back what was rejected or is unsure.
---@param buf integer?
---@return boolean
function M.suggest(buf)
    local state = state_of(buf)
    if not state then
        return false
    end
    ask(state, INVOKED)
    return true
end

--- Take away whatever is shown, everywhere, because suggestions were turned off.
function M.hide_all()
    for _, state in pairs(states) do
        cancel(state)
        ignore(state, "turned_off")
    end
end

--- What is shown in a buffer, and what its own state forbids, for people who ask.
---@param buf integer?
---@return {attached: boolean, shown: string?, blocked: string?}
function M.describe(buf)
    local state = state_of(buf)
    if not state then
        return { attached = false }
    end
    return { attached = true, shown = state.shown and state.shown.kind, blocked = blocked(state.buf) or state.blocked }
end

return M
