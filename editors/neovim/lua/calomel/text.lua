--- Places and pieces of text: between UTF-16 units and bytes, and what an edit changes, line by line.

local M = {}

--- Replaces what stands between two places by `text`. Rows count from 0, columns are bytes.
---@class calomel.Edit
---@field srow integer
---@field scol integer
---@field erow integer
---@field ecol integer
---@field text string Lines separated by \n.

--- One change of whole lines or within one line. `row` and `count` are rows of the text before all changes.
---@class calomel.Hunk
---@field kind "line"|"insert"|"delete"|"replace"
---@field row integer First row changed; of an insertion the row that it is put before.
---@field count integer Rows changed, 0 for an insertion.
---@field lines string[] What stands there after it.
---@field parts? calomel.Part[] Of a changed line.
---@field whole? boolean So much of a line changes that it reads better as another line.

---@class calomel.Part
---@field scol integer
---@field ecol integer
---@field text string

---@class calomel.Position
---@field line integer
---@field character integer

---@param text string
---@return string[]
function M.lines(text)
    return vim.split(text, "\n", { plain = true })
end

--- UTF-16 units of a text.
---@param text string
---@return integer
function M.units(text)
    return vim.str_utfindex(text, "utf-16")
end

---@param line string
---@param units integer
---@return integer byte
local function byte_of(line, units)
    return vim.str_byteindex(line, "utf-16", units, false)
end

---@param buf integer
---@param row integer
---@param col integer
---@return calomel.Position
function M.position(buf, row, col)
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
    return { line = row, character = vim.str_utfindex(line, "utf-16", math.min(col, #line), false) }
end

--- The edit that a server's range and text mean in this buffer, line ends being the buffer's.
---@param buf integer
---@param range {start: calomel.Position, end: calomel.Position}
---@param text string
---@return calomel.Edit
function M.edit(buf, range, text)
    -- A buffer with line ends of both kinds holds the rarer ones as text.
    if vim.bo[buf].fileformat ~= "unix" then
        text = text:gsub("\r\n?", "\n")
    end
    local count = vim.api.nvim_buf_line_count(buf)
    local function line(row)
        return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
    end
    local srow, erow = range.start.line, range["end"].line
    local scol, ecol
    -- Behind the last line end a server sees an empty line that a buffer does not have.
    if erow >= count then
        erow, ecol = count - 1, #line(count - 1)
        if text:sub(-1) == "\n" then
            text = text:sub(1, -2)
        elseif text == "" and srow > 0 and srow < count and range.start.character == 0 then
            srow, scol = srow - 1, #line(srow - 1)
        end
    else
        ecol = byte_of(line(erow), range["end"].character)
    end
    if srow >= count then
        srow, scol = count - 1, #line(count - 1)
        text = "\n" .. text
    else
        scol = scol or byte_of(line(srow), range.start.character)
    end
    return { srow = srow, scol = scol, erow = erow, ecol = ecol, text = text }
end

---@param buf integer
---@param edit calomel.Edit
---@return string
function M.replaced(buf, edit)
    return table.concat(vim.api.nvim_buf_get_text(buf, edit.srow, edit.scol, edit.erow, edit.ecol, {}), "\n")
end

local function continues(text, at)
    local byte = text:byte(at)
    return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

--- Bytes that two texts share at their beginning, and then at their end, no character being cut.
---@param old string
---@param new string
---@return integer front
---@return integer back
function M.shared(old, new)
    local most = math.min(#old, #new)
    local front = 0
    while front < most and old:byte(front + 1) == new:byte(front + 1) do
        front = front + 1
    end
    while front > 0 and (continues(old, front + 1) or continues(new, front + 1)) do
        front = front - 1
    end
    local back = 0
    while back < most - front and old:byte(#old - back) == new:byte(#new - back) do
        back = back + 1
    end
    while back > 0 and continues(old, #old - back + 1) do
        back = back - 1
    end
    return front, back
end

--- Where a place is after `text` was put at it.
---@param row integer
---@param col integer
---@param text string
---@return integer row
---@return integer col
function M.after(row, col, text)
    local lines = M.lines(text)
    return row + #lines - 1, (#lines == 1 and col or 0) + #lines[#lines]
end

--- Without what its old and its new text share.
---@param buf integer
---@param edit calomel.Edit
---@return calomel.Edit
---@return string removed
---@return string kept What was left out at its beginning.
---@return string tail What was left out at its end.
function M.trimmed(buf, edit)
    local old = M.replaced(buf, edit)
    local front, back = M.shared(old, edit.text)
    local head = old:sub(1, front)
    local removed = old:sub(front + 1, #old - back)
    local srow, scol = M.after(edit.srow, edit.scol, head)
    local erow, ecol = M.after(srow, scol, removed)
    local text = edit.text:sub(front + 1, #edit.text - back)
    return { srow = srow, scol = scol, erow = erow, ecol = ecol, text = text }, removed, head, old:sub(#old - back + 1)
end

---@param old string
---@param new string
---@return integer[][]
local function diff(old, new)
    local differ = vim.text and vim.text.diff or vim.diff
    return differ(old, new, { result_type = "indices", algorithm = "histogram" }) --[[@as integer[][] ]]
end

--- Words, and every other character for itself.
local function tokens(line)
    local found, at = {}, 1
    while at <= #line do
        local word = line:match("^[%w_]+", at) or line:sub(at, at + vim.str_utf_end(line, at))
        found[#found + 1] = word
        at = at + #word
    end
    return found
end

---@param old string
---@param new string
---@return calomel.Part[]
local function parts_of(old, new)
    local from, to = tokens(old), tokens(new)
    local starts = { 0 }
    for at, token in ipairs(from) do
        starts[at + 1] = starts[at] + #token
    end
    local function joined(list)
        return #list == 0 and "" or table.concat(list, "\n") .. "\n"
    end
    local parts = {}
    for _, hunk in ipairs(diff(joined(from), joined(to))) do
        local sa, ca, sb, cb = unpack(hunk)
        local first = ca == 0 and sa + 1 or sa
        local text = cb == 0 and "" or table.concat(to, "", sb, sb + cb - 1)
        local scol, ecol = starts[first], starts[first + ca]
        -- "na" to "name" is an insertion of "me", not another word.
        local front, back = M.shared(old:sub(scol + 1, ecol), text)
        if front + back == math.min(ecol - scol, #text) then
            scol, ecol, text = scol + front, ecol - back, text:sub(front + 1, #text - back)
        end
        parts[#parts + 1] = { scol = scol, ecol = ecol, text = text }
    end
    return parts
end

-- More pieces than this in a line are harder to read than the new line.
local MOST_PARTS = 3

---@param parts calomel.Part[]
---@param old string
---@param new string
---@return boolean
local function is_whole(parts, old, new)
    local removed, added = 0, 0
    for _, part in ipairs(parts) do
        removed, added = removed + part.ecol - part.scol, added + #part.text
    end
    if removed == 0 then
        return #parts > MOST_PARTS
    end
    return #parts > MOST_PARTS or (removed > 0.6 * #vim.trim(old) and added > 0.6 * #vim.trim(new))
end

--- What an edit changes, line by line, in order. Applying them all gives what the edit gives.
---@param buf integer
---@param edit calomel.Edit
---@return calomel.Hunk[]
function M.hunks(buf, edit)
    local old = vim.api.nvim_buf_get_lines(buf, edit.srow, edit.erow + 1, false)
    local new = M.lines(old[1]:sub(1, edit.scol) .. edit.text .. old[#old]:sub(edit.ecol + 1))
    local hunks = {}
    for _, indices in ipairs(diff(table.concat(old, "\n") .. "\n", table.concat(new, "\n") .. "\n")) do
        local sa, ca, sb, cb = unpack(indices)
        local row = edit.srow + (ca == 0 and sa or sa - 1)
        if ca == cb then
            for at = 0, ca - 1 do
                local before, after = old[sa + at], new[sb + at]
                local parts = parts_of(before, after)
                hunks[#hunks + 1] = {
                    kind = "line",
                    row = row + at,
                    count = 1,
                    lines = { after },
                    parts = parts,
                    whole = is_whole(parts, before, after),
                }
            end
        else
            hunks[#hunks + 1] = {
                kind = ca == 0 and "insert" or cb == 0 and "delete" or "replace",
                row = row,
                count = ca,
                lines = vim.list_slice(new, sb, sb + cb - 1),
            }
        end
    end
    return hunks
end

--- Make the changes, the last one first, so that no place moves before its turn.
---@param buf integer
---@param hunks calomel.Hunk[]
function M.apply(buf, hunks)
    for at = #hunks, 1, -1 do
        local hunk = hunks[at]
        if hunk.kind == "line" then
            for part = #hunk.parts, 1, -1 do
                local piece = hunk.parts[part]
                vim.api.nvim_buf_set_text(buf, hunk.row, piece.scol, hunk.row, piece.ecol, { piece.text })
            end
        else
            vim.api.nvim_buf_set_lines(buf, hunk.row, hunk.row + hunk.count, false, hunk.lines)
        end
    end
end

--- The next word of a suggestion, with the white space before it.
---@param text string
---@return string
function M.first_word(text)
    local space = text:match("^%s*")
    local found, class = space, nil
    -- The editor's own words: those of the language, and ends of words in texts without blanks.
    for _, character in ipairs(vim.fn.split(text:sub(#space + 1), "\\zs")) do
        local own = vim.fn.charclass(character)
        if own == 0 or (class ~= nil and own ~= class) then
            break
        end
        found, class = found .. character, own
    end
    return found
end

--- The rest of the line of a suggestion; a suggestion that begins with a line end gives that and the line behind it.
---@param text string
---@return string
function M.first_line(text)
    local ends = text:match("^\n*")
    return ends .. text:sub(#ends + 1):match("^[^\n]*")
end

return M
