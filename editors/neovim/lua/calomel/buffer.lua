--- What goes on in one buffer: what the user did there, and what follows from it.

local config = require("calomel.config")
local display = require("calomel.display")
local question = require("calomel.question")
local server = require("calomel.server")
local situation = require("calomel.situation")
local suggestion = require("calomel.suggestion")

local M = {}

-- A cursor that moves tells of a next edit only for so long after an edit; the server's rule for ghost text.
local AFTER_EDIT_MS = 10000
-- Moving through a file is no question, unless it goes to a problem.
local MOVE_MS = 100
-- Rows beyond those at which an edit was shown; further away the user is busy elsewhere.
local PATIENT_ROWS = 5

---@class calomel.State
---@field buf integer
---@field tick integer
---@field row integer
---@field col integer
---@field line string? Of the cursor.
---@field edited number When the text changed last, in ms.
---@field shown calomel.Suggestion?
---@field offered calomel.Suggestion[]? Of which `shown` is one.
---@field chosen integer? Which of them the user turned to.
---@field pending calomel.Pending?
---@field timer uv.uv_timer_t
---@field lines_tick integer? When lines changed last.
---@field due boolean? A question is about to be asked.
---@field passed {removed: string, new: string}? The edit that was shown when the user typed on.
---@field arrived {tick: integer, row: integer, col: integer}? Where the key that goes to an edit went last.
---@field stale boolean? The user typed past what is shown, and the server has not said yet what comes now.
---@field no_text calomel.Silence? Why the last request for a completion had none.
---@field marked boolean? A sign alone says that there is something to ask for, or a sentence why there is nothing.
---@field said integer? Which sentence that is.
---@field finished integer? The text in which the last of several edits was accepted.
---@field menu boolean? A menu of completions is open.
---@field blocked string? Why the editor's own state forbade a question last.

---@type table<integer, calomel.State>
local states = {}

--- The state of a buffer that is served.
---@param buf integer?
---@return calomel.State?
function M.state(buf)
    return states[(buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf]
end

--- Ask nothing, and let no answer come.
---@param state calomel.State
function M.cancel(state)
    state.due = false
    state.timer:stop()
    question.cancel(state)
end

---@param state calomel.State
---@param delay integer
local function ask_soon(state, delay)
    state.due = true
    state.timer:start(delay, 0, function()
        vim.schedule(function()
            if states[state.buf] ~= state or state.timer:is_active() then
                return
            end
            -- Neovim tells of changes a moment later. If this tells of one, it asks anew.
            M.update(state.buf)
            if state.due and not state.timer:is_active() then
                state.due = false
                if vim.api.nvim_get_current_buf() == state.buf then
                    question.ask(state, question.AUTOMATIC)
                end
            end
        end)
    end)
end

---@param state calomel.State
---@param typed boolean The cursor or its line is not what it was.
local function changed(state, typed)
    state.edited = vim.uv.now()
    local s = state.shown
    if state.marked then
        display.hide(state)
    end
    if s then
        if suggestion.follow(s, state.row, state.col) then
            state.stale = state.stale or typed and s.kind == "edit" and not s.ghost
            if typed and s.kind == "edit" and situation.mode() == "insert" then
                state.passed = { removed = s.removed, new = s.new }
            end
            display.draw(state)
        else
            -- The server sees from the text what became of it.
            display.hide(state)
        end
    end
    ask_soon(state, config.current.debounce_ms)
end

--- Tell where the cursor is: the model reads what stands there once it rests.
---@param buf integer
local function focused(buf)
    local client = server.client(buf)
    if client then
        client:notify("textDocument/didFocus", vim.lsp.util.make_position_params(0, client.offset_encoding))
    end
end

---@param state calomel.State
---@param row_before integer
local function moved(state, row_before)
    local s = state.shown
    if state.marked and state.row ~= row_before then
        display.hide(state)
    end
    if s and s.kind == "fill" then
        if s.row ~= state.row or s.col ~= state.col then
            display.ignore(state, "moved_away")
        end
    elseif s then
        local away = s.elsewhere and math.abs(state.row - s.row) or suggestion.rows_away(s, state.row) - s.distance
        if away > PATIENT_ROWS then
            display.ignore(state, "moved_away")
        else
            display.draw(state)
            return
        end
    end
    local recently = vim.uv.now() - state.edited < AFTER_EDIT_MS
    if situation.mode() == "insert" then
        ask_soon(state, config.current.debounce_ms)
    elseif recently and state.row ~= row_before or situation.at_problem(state.buf) then
        ask_soon(state, MOVE_MS)
    elseif state.row ~= row_before then
        focused(state.buf)
    end
end

--- Something happened: find out what, and do what follows. Harmless when nothing did.
---@param buf integer
function M.update(buf)
    local state = states[buf]
    if not state or vim.api.nvim_get_current_buf() ~= buf then
        return
    end
    local tick, row_before, col_before, line_before = state.tick, state.row, state.col, state.line
    state.tick = vim.api.nvim_buf_get_changedtick(buf)
    state.row, state.col = situation.cursor()
    state.line = vim.api.nvim_get_current_line()
    local is_there = state.row == row_before and state.col == col_before
    state.blocked = situation.blocked(buf)
    if state.lines_tick then
        server.keep_up(buf, state.lines_tick)
    end
    if state.blocked then
        M.cancel(state)
        display.ignore(state, state.blocked)
        return
    end
    if state.shown and state.shown.kind == "fill" and situation.covered() then
        M.cancel(state)
        display.ignore(state, "popup_menu")
    end
    local menu = situation.menu()
    if state.menu ~= menu then
        state.menu = menu
        display.draw(state)
    end
    if state.tick ~= tick then
        -- A menu that closes puts back what stands there already.
        changed(state, not (is_there and state.line == line_before))
    elseif not is_there then
        moved(state, row_before)
    end
end

---@param buf integer
local function left_insert(buf)
    local state = states[buf]
    if not state then
        return
    end
    -- Before the cursor's step to the left counts as a move.
    if state.shown and state.shown.kind == "fill" then
        display.ignore(state, "left_insert_mode")
    end
    M.update(buf)
    M.cancel(state)
    state.passed = nil
    -- Tab has another meaning here.
    display.draw(state)
    if (not state.shown or state.stale) and vim.uv.now() - state.edited < AFTER_EDIT_MS then
        ask_soon(state, config.current.debounce_ms)
    end
end

---@param buf integer
local function left_buffer(buf)
    local state = states[buf]
    if state then
        M.cancel(state)
        display.ignore(state, "left_buffer")
    end
end

---@param buf integer
local function entered(buf)
    local state = states[buf]
    if state and server.client(buf) then
        state.tick = vim.api.nvim_buf_get_changedtick(buf)
        state.row, state.col = situation.cursor()
        focused(buf)
    end
end

--- Neovim's events tell of changes that follow a key; a formatter's, or another plugin's, come without one.
---@param state calomel.State
local function watch_lines(state)
    local due = false
    vim.api.nvim_buf_attach(state.buf, false, {
        on_lines = function(_, _, tick)
            if states[state.buf] ~= state then
                return true
            end
            state.lines_tick = tick
            if not due then
                due = true
                vim.schedule(function()
                    due = false
                    M.update(state.buf)
                end)
            end
        end,
    })
end

local watches_cmp = false

--- nvim-cmp tells of its menu by events of its own.
local function watch_cmp()
    local cmp = package.loaded["cmp"]
    if watches_cmp or type(cmp) ~= "table" or type(cmp.event) ~= "table" then
        return
    end
    watches_cmp = true
    for _, event in ipairs({ "menu_opened", "menu_closed" }) do
        cmp.event:on(event, function()
            vim.schedule(function()
                M.update(vim.api.nvim_get_current_buf())
            end)
        end)
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
        states[buf].row, states[buf].col = situation.cursor()
        focused(buf)
    end
    watch_lines(states[buf])
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
    local function behind()
        -- The menu and the register are there, or gone, only behind the event.
        vim.schedule(function()
            M.update(buf)
        end)
    end
    on({ "CompleteChanged", "CompleteDone", "RecordingEnter" }, behind)
    vim.api.nvim_create_autocmd("User", {
        group = group,
        pattern = { "BlinkCmpMenuOpen", "BlinkCmpMenuClose" },
        callback = behind,
    })
    on("InsertEnter", watch_cmp)
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
        display.hide(state)
    end
end

--- The server knows how many edits there are beside the one that is shown: ask for that number.
server.counted = function(uri)
    local state = states[vim.api.nvim_get_current_buf()]
    local s = state and state.shown
    if s and s.kind == "edit" and not s.chain and not state.stale and uri == vim.uri_from_bufnr(state.buf) then
        M.update(state.buf)
        if state.shown == s and not state.due and not state.pending then
            question.follow(state)
        end
    end
end

--- The first line of a text is shown: ask for all of it.
server.extended = function(uri, id)
    local state = states[vim.api.nvim_get_current_buf()]
    local s = state and state.shown
    if s and s.id == id and uri == vim.uri_from_bufnr(state.buf) then
        M.update(state.buf)
        if state.shown == s and not state.due and not state.pending then
            question.ask(state, question.AUTOMATIC)
        end
    end
end

--- Ask now, as the user's key wants it.
---@param buf integer?
---@return boolean
function M.ask(buf)
    local state = M.state(buf)
    if not state or vim.api.nvim_get_current_buf() ~= state.buf then
        return false
    end
    M.update(state.buf)
    state.due = false
    state.timer:stop()
    state.blocked = situation.blocked(state.buf)
    if state.blocked then
        display.say(state, ("Nothing shown: %s."):format(situation.REASONS[state.blocked]))
    else
        question.ask(state, question.INVOKED)
    end
    return true
end

--- Take away whatever is shown, everywhere, because suggestions were turned off.
function M.hide_all()
    for _, state in pairs(states) do
        M.cancel(state)
        display.ignore(state, "turned_off")
    end
end

--- What is shown in a buffer, whether more may come, and what its own state forbids, for people who ask.
---@param buf integer?
---@return {attached: boolean, shown: string?, asking: boolean?, blocked: string?}
function M.describe(buf)
    local state = M.state(buf)
    if not state then
        return { attached = false }
    end
    return {
        attached = true,
        shown = state.shown and state.shown.kind,
        asking = state.due or state.pending ~= nil,
        no_text = state.no_text,
        blocked = situation.blocked(state.buf) or state.blocked or situation.covered() and "popup_menu" or nil,
    }
end

return M
