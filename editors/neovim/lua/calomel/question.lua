--- What the server is asked about a buffer: ghost text first, then the next edit. One question at a time.

local config = require("calomel.config")
local display = require("calomel.display")
local server = require("calomel.server")
local situation = require("calomel.situation")
local suggestion = require("calomel.suggestion")
local text = require("calomel.text")

local M = {}

M.INVOKED, M.AUTOMATIC = 1, 2

---@class calomel.Pending
---@field id integer?
---@field client vim.lsp.Client

---@param state calomel.State
---@return boolean
local function is_where_it_was(state, tick, row, col)
    -- An answer about another text, or for another place, is worth nothing.
    if vim.api.nvim_get_current_buf() ~= state.buf or vim.api.nvim_buf_get_changedtick(state.buf) ~= tick then
        return false
    end
    local here_row, here_col = situation.cursor()
    return here_row == row and here_col == col
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
        if not err and is_where_it_was(state, tick, row, col) and not situation.blocked(state.buf) then
            done(type(result) == "table" and result or nil)
        end
    end, state.buf)
    pending.id = id
    -- Behind the new question: a server that knows of it can go on with what it computes for the old one.
    if before and before.id and before.client.requests[before.id] then
        before.client:cancel_request(before.id)
    end
end

--- The buffer that an edit is of; nil when it is of another text than the one that is there.
---@param state calomel.State
---@param item table?
---@return integer?
local function buffer_of(state, item)
    local named = item and item.textDocument or {}
    local client = server.client(state.buf)
    for buf in pairs(item and client and client.attached_buffers or {}) do
        local is_it = named.uri == nil and buf == state.buf or named.uri == vim.uri_from_bufnr(buf)
        if is_it and (named.version == nil or named.version == vim.lsp.util.buf_versions[buf]) then
            return buf
        end
    end
end

-- As many rows from the cursor, and as many problems, as VS Code's extension tells.
local NEAR_ROWS, MOST_PROBLEMS = 40, 16
local SEVERITIES = { "error", "warning", "information", "hint" }

--- Problems that Neovim shows around the cursor, the nearest first, as hints to what comes next.
---@param state calomel.State
---@return table[]
local function problems(state)
    local function away(each)
        return math.abs(each.lnum - state.row)
    end
    local near = vim.tbl_filter(function(each)
        return away(each) <= NEAR_ROWS
    end, vim.diagnostic.get(state.buf))
    table.sort(near, function(a, b)
        return away(a) < away(b)
    end)
    return vim.tbl_map(function(each)
        local from = text.position(state.buf, each.lnum, each.col)
        local to = text.position(state.buf, each.end_lnum or each.lnum, each.end_col or each.col)
        local severity = SEVERITIES[each.severity] or "error"
        return { range = { start = from, ["end"] = to }, message = each.message, severity = severity }
    end, vim.list_slice(near, 1, MOST_PROBLEMS))
end

--- Say why nothing came to whoever asked for it.
---@param state calomel.State
---@param text calomel.Silence? Why there is no text, where that was asked for, too.
local function tell_why(state, text)
    local silence = server.silences[vim.uri_from_bufnr(state.buf)]
    display.say(state, situation.why(text, silence or { message = "The server does not answer." }))
end

---@param state calomel.State
---@param kind integer
---@param why calomel.Silence? Why there is no text.
local function ask_edit(state, kind, why)
    local params = {
        textDocument = { uri = vim.uri_from_bufnr(state.buf), version = vim.lsp.util.buf_versions[state.buf] },
        position = text.position(state.buf, state.row, state.col),
        context = { triggerKind = kind },
        diagnostics = problems(state),
    }
    request(state, "textDocument/copilotInlineEdit", params, function(result)
        local item = result and type(result.edits) == "table" and result.edits[1]
        local buf = buffer_of(state, item)
        local s = buf and suggestion.edit(buf, item, state.row, state.col)
        if s and item.hint then
            local row = buf == state.buf and suggestion.rows(s) or state.row
            suggestion.release(s)
            display.mark(state, row)
        elseif s then
            s.elsewhere = buf ~= state.buf or nil
            display.show(state, s)
        elseif state.shown and state.shown.kind == "edit" then
            display.hide(state)
        end
        if s then
            return
        elseif kind == M.INVOKED then
            tell_why(state, why)
        elseif state.finished == state.tick then
            display.say_done(state)
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
        local found = {}
        state.no_text = nil
        local wanted = situation.mode() == "insert" and not situation.covered()
        for _, item in ipairs(wanted and result and (result.items or result) or {}) do
            local s = suggestion.fill(state.buf, item, state.row, state.col)
            if s and (s.ghost or #found == 0) then
                found[#found + 1] = s
            elseif s then
                suggestion.release(s)
            end
        end
        if #found > 0 and found[1].item.hint then
            vim.iter(found):each(suggestion.release)
            display.mark(state, state.row)
            return
        elseif #found > 0 then
            display.offer(state, found)
            return
        end
        if state.shown and state.shown.kind == "fill" then
            display.hide(state)
        end
        state.no_text = server.silences[vim.uri_from_bufnr(state.buf)]
        if config.current.next_edit then
            ask_edit(state, kind, state.no_text)
        elseif kind == M.INVOKED then
            tell_why(state)
        end
    end)
end

--- Ask about the place and the text that `state` knows of.
---@param state calomel.State
---@param kind integer
function M.ask(state, kind)
    local where = situation.mode()
    if state.blocked or where == "other" then
        return
    end
    if where == "insert" and config.own() and not situation.covered() then
        ask_fill(state, kind)
    elseif config.current.next_edit then
        ask_edit(state, kind)
    end
end

--- Ask for the edit that follows one that was taken: the server has it.
---@param state calomel.State
function M.follow(state)
    ask_edit(state, M.AUTOMATIC)
end

--- Take the question back that is on its way.
---@param state calomel.State
function M.cancel(state)
    local pending = state.pending
    state.pending = nil
    if pending and pending.id and pending.client.requests[pending.id] then
        pending.client:cancel_request(pending.id)
    end
end

return M
