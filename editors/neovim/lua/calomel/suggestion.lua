--- One suggestion in the buffer: what it would change, and how it goes along with what is typed.

local text = require("calomel.text")

local M = {}

local anchors = vim.api.nvim_create_namespace("calomel.anchors")

--- Rows between the cursor and an edit from which on the first key press only goes there.
M.JUMP_ROWS = 2

---@class calomel.Suggestion
---@field kind "fill"|"edit" What was asked.
---@field ghost boolean It only inserts at the cursor; else it is shown as changes of lines.
---@field id string
---@field item table As the server sent it.
---@field buf integer
---@field row integer Of the cursor it was made for, or of its insertion.
---@field col integer
---@field told boolean? The server knows that it was shown.
---@field text string Ghost text: what is left to insert.
---@field lead string Ghost text: the beginning of the item's text that is in the buffer already.
---@field before string Ghost text: what stands before it in its line.
---@field behind string Ghost text: what stands behind it in its line.
---@field line_count integer Ghost text: lines of the buffer.
---@field hunks calomel.Hunk[] Changes of lines.
---@field removed string Changes of lines: the text that they replace.
---@field new string Changes of lines: what takes its place.
---@field tail string Changes of lines: the rest of the name that they change, where the cursor goes behind.
---@field at [integer, integer] Changes of lines: row and column where that text begins.
---@field first integer? Anchors of that text.
---@field last integer?
---@field distance integer? Rows from the cursor when it was shown first.
---@field elsewhere boolean? It is of another buffer than the one that announces it.
---@field chain {index: integer, total: integer}? Where it is among the edits of one answer, from 1.
---@field rest calomel.Hunk[][]? Those of them that follow.

---@param item table
---@return string?
local function id_of(item)
    local arguments = type(item.command) == "table" and item.command.arguments
    return type(arguments) == "table" and type(arguments[1]) == "string" and arguments[1] or nil
end

---@param s table
---@param edit calomel.Edit Trimmed.
---@param removed string
---@param tail string
---@return calomel.Suggestion?
local function with_hunks(s, edit, removed, tail)
    -- A NUL in a line reads as a line end.
    local lines = vim.api.nvim_buf_get_lines(s.buf, edit.srow, edit.erow + 1, false)
    for _, line in ipairs(lines) do
        if line:find("\n", 1, true) then
            return nil
        end
    end
    s.ghost, s.removed, s.new, s.tail = false, removed, edit.text, tail
    s.hunks = text.hunks(s.buf, edit)
    if #s.hunks == 0 then
        return nil
    end
    local function anchor(row, col, gravity)
        return vim.api.nvim_buf_set_extmark(s.buf, anchors, row, col, { right_gravity = gravity, undo_restore = false })
    end
    s.at = { edit.srow, edit.scol }
    s.first = anchor(edit.srow, edit.scol, false)
    s.last = anchor(edit.erow, edit.ecol, true)
    return s
end

--- From an item of `textDocument/inlineCompletion`, asked for at a place of the cursor.
---@param buf integer
---@param item table
---@param row integer
---@param col integer
---@return calomel.Suggestion?
function M.fill(buf, item, row, col)
    local id, insertion = id_of(item), item.insertText
    if not id or type(insertion) ~= "string" then
        return nil
    end
    local here = text.position(buf, row, col)
    local edit = text.edit(buf, item.range or { start = here, ["end"] = here }, insertion)
    local removed, lead, tail
    edit, removed, lead, tail = text.trimmed(buf, edit)
    if removed == "" and edit.text == "" then
        return nil
    end
    local s = { kind = "fill", id = id, item = item, buf = buf, row = row, col = col, lead = lead }
    if removed ~= "" or edit.srow ~= row or edit.scol ~= col then
        return with_hunks(s, edit, removed, tail)
    end
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
    s.ghost, s.text = true, edit.text
    s.before, s.behind = line:sub(1, col), line:sub(col + 1)
    s.line_count = vim.api.nvim_buf_line_count(buf)
    return s
end

--- From an edit of `textDocument/copilotInlineEdit`.
---@param buf integer
---@param item table
---@param row integer Of the cursor.
---@param col integer
---@return calomel.Suggestion?
function M.edit(buf, item, row, col)
    local id = id_of(item)
    if not id or type(item.text) ~= "string" or type(item.range) ~= "table" then
        return nil
    end
    local edit, removed, _, tail = text.trimmed(buf, text.edit(buf, item.range, item.text))
    if removed == edit.text then
        return nil
    end
    local s = { kind = "edit", id = id, item = item, buf = buf, row = row, col = col }
    s = with_hunks(s, edit, removed, tail)
    if s then
        s.distance = M.rows_away(s, row)
        s.rest = {}
        local chain = type(item.chain) == "table" and item.chain or { total = 1 }
        s.chain = chain.total > 1 and { index = chain.index, total = chain.total } or nil
        for _, each in ipairs(chain.rest or {}) do
            s.rest[#s.rest + 1] = text.hunks(buf, text.edit(buf, each.range, each.text))
        end
    end
    return s
end

--- Let go of what the buffer keeps for it.
---@param s calomel.Suggestion
function M.release(s)
    if s.first and vim.api.nvim_buf_is_valid(s.buf) then
        vim.api.nvim_buf_del_extmark(s.buf, anchors, s.first)
        vim.api.nvim_buf_del_extmark(s.buf, anchors, s.last)
    end
    s.first = nil
end

---@param s calomel.Suggestion
---@param row integer Of the cursor.
---@param col integer
---@return boolean
local function follow_ghost(s, row, col)
    if row < s.row or (row == s.row and col < s.col) then
        return false
    end
    if vim.api.nvim_buf_line_count(s.buf) - s.line_count ~= row - s.row then
        return false
    end
    local first = vim.api.nvim_buf_get_lines(s.buf, s.row, s.row + 1, false)[1] or ""
    local last = vim.api.nvim_buf_get_lines(s.buf, row, row + 1, false)[1] or ""
    if first:sub(1, s.col) ~= s.before or last:sub(col + 1) ~= s.behind then
        return false
    end
    local typed = table.concat(vim.api.nvim_buf_get_text(s.buf, s.row, s.col, row, col, {}), "\n")
    if s.text:sub(1, #typed) ~= typed or typed == s.text then
        return false
    end
    s.row, s.col = row, col
    s.text, s.lead = s.text:sub(#typed + 1), s.lead .. typed
    s.before, s.line_count = last:sub(1, col), vim.api.nvim_buf_line_count(s.buf)
    return true
end

--- Go along with a change of the buffer: text that agrees with ghost text shortens it, a change elsewhere moves an
--- edit. False when it no longer holds.
---@param s calomel.Suggestion
---@param row integer Of the cursor.
---@param col integer
---@return boolean
function M.follow(s, row, col)
    if s.ghost then
        return follow_ghost(s, row, col)
    end
    if s.kind == "fill" or not vim.api.nvim_buf_is_loaded(s.buf) then
        return false
    end
    local from = vim.api.nvim_buf_get_extmark_by_id(s.buf, anchors, s.first, {})
    local to = vim.api.nvim_buf_get_extmark_by_id(s.buf, anchors, s.last, {})
    if #from == 0 or #to == 0 or to[1] < from[1] or (to[1] == from[1] and to[2] < from[2]) then
        return false
    end
    -- An anchor at the end of the text may stand behind its last line.
    if to[1] >= vim.api.nvim_buf_line_count(s.buf) then
        return false
    end
    local edit = { srow = from[1], scol = from[2], erow = to[1], ecol = to[2], text = s.new }
    if text.replaced(s.buf, edit) ~= s.removed then
        return false
    end
    s.hunks, s.at = text.hunks(s.buf, edit), from
    -- What follows is as old as the text before: the server tells it anew.
    s.rest = {}
    return #s.hunks > 0
end

--- Where the cursor belongs once the changes are made: behind what was put in, and behind the whole name.
---@param s calomel.Suggestion
---@param row integer Where what is put in begins.
---@param col integer
---@return integer row
---@return integer col
local function behind(s, row, col)
    row, col = text.after(row, col, s.new)
    row = math.min(row, vim.api.nvim_buf_line_count(s.buf) - 1)
    local line = vim.api.nvim_buf_get_lines(s.buf, row, row + 1, false)[1] or ""
    local whole = s.tail ~= "" and line:sub(col + 1, col + #s.tail) == s.tail
    return row, math.min(whole and col + #s.tail or col, #line)
end

--- Make the changes of lines, and those of all that follow if `all`.
---@param s calomel.Suggestion
---@param all boolean
---@return integer row Where the cursor belongs.
---@return integer col
function M.apply(s, all)
    local each = vim.list_extend({ s.hunks }, all and s.rest or {})
    table.sort(each, function(a, b)
        return a[1].row > b[1].row
    end)
    local shift = 0
    -- From the last one to the first, so that no place moves before its turn.
    for _, hunks in ipairs(each) do
        local before = vim.api.nvim_buf_line_count(s.buf)
        text.apply(s.buf, hunks)
        if hunks[1].row < s.hunks[1].row then
            shift = shift + vim.api.nvim_buf_line_count(s.buf) - before
        end
    end
    return behind(s, s.at[1] + shift, s.at[2])
end

--- The rows that it changes or stands at.
---@param s calomel.Suggestion
---@return integer first
---@return integer last
function M.rows(s)
    if s.ghost then
        return s.row, s.row
    end
    local bottom = vim.api.nvim_buf_line_count(s.buf) - 1
    local first, last = s.hunks[1], s.hunks[#s.hunks]
    return math.min(first.row, bottom), math.min(last.row + math.max(last.count - 1, 0), bottom)
end

---@param s calomel.Suggestion
---@param row integer
---@return integer
function M.rows_away(s, row)
    local first, last = M.rows(s)
    return math.max(first - row, row - last, 0)
end

--- Where the first change begins.
---@param s calomel.Suggestion
---@return integer row
---@return integer col
function M.start(s)
    local hunk = s.hunks[1]
    return M.rows(s), hunk.parts and hunk.parts[1].scol or 0
end

--- Both show the same.
---@param a calomel.Suggestion
---@param b calomel.Suggestion
---@return boolean
function M.same(a, b)
    if a.id ~= b.id or a.ghost ~= b.ghost then
        return false
    end
    if a.ghost then
        return a.text == b.text and a.row == b.row and a.col == b.col
    end
    return vim.deep_equal(a.hunks, b.hunks) and vim.deep_equal(a.chain, b.chain)
end

--- UTF-16 units from the beginning of the item's text to the end of `piece`, which comes next.
---@param s calomel.Suggestion
---@param piece string
---@return integer
function M.accepted_length(s, piece)
    local whole = s.lead .. piece
    local length = text.units(whole)
    if vim.bo[s.buf].fileformat == "dos" and s.item.insertText:find("\r\n", 1, true) then
        local _, ends = whole:gsub("\n", "")
        length = length + ends
    end
    return length
end

return M
