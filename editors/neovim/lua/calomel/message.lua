--- What the plugin says in the message line when the user does not expect it.

local M = {}

--- The last message, where it did not fit and `:Calomel status` does not say it anyway.
---@type string?
M.cut = nil

--- Notify the user in one line: a longer message would wait for Enter and take the keys that follow. While text is typed,
--- "-- INSERT --" would take its place at once.
---@param message string
---@param level integer?
---@param state boolean? `:Calomel status` says it anyway.
---@param brief string? What to say instead of a long message.
function M.say(message, level, state, brief)
    if vim.fn.mode():find("^[iR]") and vim.o.showmode then
        vim.o.showmode = false
        vim.api.nvim_create_autocmd("InsertLeave", {
            once = true,
            callback = function()
                vim.o.showmode = true
            end,
        })
    end
    local room = vim.v.echospace - #"Calomel: "
    M.cut = nil
    if vim.fn.strdisplaywidth(message) > room then
        M.cut = not state and message or nil
        message = brief or message
    end
    if vim.fn.strdisplaywidth(message) > room then
        local rest = "… (:Calomel status)"
        message = vim.fn.strcharpart(message, 0, room - vim.fn.strchars(rest)) .. rest
    end
    -- Below one that has not been drawn yet there is no room.
    vim.cmd.redraw()
    vim.notify("Calomel: " .. message, level or vim.log.levels.INFO)
end

return M
