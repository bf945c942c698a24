--- What the user sees of a suggestion: virtual text, struck text and hints, all of it extmarks of one namespace.

local text = require("calomel.text")

local M = {}

M.ns = vim.api.nvim_create_namespace("calomel")

local GHOST, DELETE, INSERT, HINT = "CalomelGhost", "CalomelDelete", "CalomelInsert", "CalomelHint"

--- Highlight groups; those of the user and of colour schemes stay.
function M.highlights()
    local struck = vim.api.nvim_get_hl(0, { name = "DiffDelete", link = false })
    -- The default scheme colours comments only where a terminal has all colours: ghost text would look typed.
    local pale = vim.api.nvim_get_hl(0, { name = "Comment", link = false }).ctermfg == nil
    local comment = vim.tbl_extend("keep", { default = true, ctermfg = 8 }, vim.api.nvim_get_hl(0, { name = "Comment" }))
    vim.api.nvim_set_hl(0, GHOST, pale and comment or { default = true, link = "Comment" })
    vim.api.nvim_set_hl(0, INSERT, { default = true, link = "DiffAdd" })
    vim.api.nvim_set_hl(0, HINT, { default = true, link = "DiagnosticHint" })
    vim.api.nvim_set_hl(0, DELETE, {
        default = true,
        bg = struck.bg,
        fg = struck.fg,
        ctermbg = struck.ctermbg,
        strikethrough = true,
        cterm = { strikethrough = true },
    })
end

---@param buf integer
function M.clear(buf)
    if vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_clear_namespace(buf, M.ns, 0, -1)
    end
end

---@param buf integer
---@param row integer
---@param col integer
---@param options vim.api.keyset.set_extmark
local function mark(buf, row, col, options)
    options.strict = false
    options.undo_restore = false
    vim.api.nvim_buf_set_extmark(buf, M.ns, row, col, options)
end

---@param buf integer
---@param row integer
---@return string
local function line_at(buf, row)
    return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
end

--- Virtual lines show a tab as ^I.
---@param buf integer
---@param line string
---@return string
local function untabbed(buf, line)
    local width = vim.bo[buf].tabstop
    local out, column = {}, 0
    for piece, tab in line:gmatch("([^\t]*)(\t?)") do
        out[#out + 1] = piece
        column = column + vim.api.nvim_strwidth(piece)
        if tab ~= "" then
            local fill = width - column % width
            out[#out + 1] = (" "):rep(fill)
            column = column + fill
        end
    end
    return table.concat(out)
end

---@param buf integer
---@param lines string[]
---@param group string
---@return [string, string][][]
local function virtual(buf, lines, group)
    return vim.tbl_map(function(line)
        return { { untabbed(buf, line), group } }
    end, lines)
end

---@param buf integer
---@param hint? {row: integer, text: string}
local function show_hint(buf, hint)
    if hint then
        mark(buf, hint.row, 0, {
            virt_text = { { "  " .. hint.text, HINT } },
            virt_text_pos = "eol",
            hl_mode = "combine",
        })
    end
end

--- Text that would be inserted at a place, in its own colours: not struck where it stands beside what goes, nor bold
--- before a bracket that Neovim marks.
---@param buf integer
---@param row integer
---@param col integer
---@param insertion string
---@param group string
local function insertion_at(buf, row, col, insertion, group)
    local lines = text.lines(insertion)
    local behind = line_at(buf, row):sub(col + 1)
    if #lines == 1 then
        mark(buf, row, col, {
            virt_text = { { untabbed(buf, lines[1]), group } },
            virt_text_pos = "inline",
            hl_mode = "replace",
        })
        return
    end
    local first = untabbed(buf, lines[1])
    local below = virtual(buf, vim.list_slice(lines, 2), group)
    if behind == "" then
        mark(buf, row, col, {
            virt_text = { { first, group } },
            virt_text_pos = "inline",
            virt_lines = below,
            hl_mode = "replace",
        })
        return
    end
    -- What stands behind the cursor moves to the end of the last line: cover it here, and show it there.
    local cover = vim.api.nvim_strwidth(untabbed(buf, behind)) - vim.api.nvim_strwidth(first)
    table.insert(below[#below], { untabbed(buf, behind) })
    mark(buf, row, col, {
        virt_text = { { first, group }, { (" "):rep(math.max(cover, 0)) } },
        virt_text_pos = "overlay",
        virt_lines = below,
        hl_mode = "replace",
    })
end

--- Ghost text.
---@param buf integer
---@param row integer
---@param col integer
---@param insertion string
---@param hint? {row: integer, text: string}
function M.ghost(buf, row, col, insertion, hint)
    M.clear(buf)
    insertion_at(buf, row, col, insertion, GHOST)
    show_hint(buf, hint)
end

---@param buf integer
---@param row integer
---@param count integer
local function strike(buf, row, count)
    for at = row, row + count - 1 do
        mark(buf, at, 0, { end_row = at, end_col = #line_at(buf, at), hl_group = DELETE, hl_eol = true })
        if line_at(buf, at) == "" then
            mark(buf, at, 0, { line_hl_group = DELETE })
        end
    end
end

---@param buf integer
---@param row integer The new lines stand before this row.
---@param lines string[]
local function lines_before(buf, row, lines)
    mark(buf, math.max(row - 1, 0), 0, {
        virt_lines = virtual(buf, lines, INSERT),
        virt_lines_above = row == 0,
    })
end

---@param buf integer
---@param hunk calomel.Hunk
local function show_hunk(buf, hunk)
    if hunk.kind == "line" and not hunk.whole then
        for _, part in ipairs(hunk.parts) do
            if part.ecol > part.scol then
                mark(buf, hunk.row, part.scol, { end_row = hunk.row, end_col = part.ecol, hl_group = DELETE })
            end
            if part.text ~= "" then
                insertion_at(buf, hunk.row, part.ecol, part.text, INSERT)
            end
        end
        return
    end
    strike(buf, hunk.row, hunk.count)
    if #hunk.lines > 0 then
        lines_before(buf, hunk.row + hunk.count, hunk.lines)
    end
end

--- A sign that there is something to ask for.
---@param buf integer
---@param row integer
function M.sign(buf, row)
    M.clear(buf)
    mark(buf, row, 0, { sign_text = "»", sign_hl_group = HINT })
end

--- A sentence behind a row.
---@param buf integer
---@param row integer
---@param what string
function M.say(buf, row, what)
    M.clear(buf)
    show_hint(buf, { row = row, text = what })
end

--- A rewriting: what goes is struck, what comes stands beside or below it.
---@param buf integer
---@param hunks calomel.Hunk[]
---@param hint? {row: integer, text: string}
function M.edit(buf, hunks, hint)
    M.clear(buf)
    for _, hunk in ipairs(hunks) do
        show_hunk(buf, hunk)
    end
    show_hint(buf, hint)
end

return M
