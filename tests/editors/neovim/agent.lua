-- Opens a socket on which a test drives this Neovim: a line of JSON asks to run Lua, a line of JSON answers.

local LINES, COLUMNS = 24, 100

vim.o.lines, vim.o.columns = LINES, COLUMNS
vim.o.swapfile = false
-- Nothing waits for a key to be pressed.
vim.o.more = false
vim.o.shortmess = vim.o.shortmess .. "IcFW"

---@param line string
---@return string
local function answer(line)
    local request = vim.json.decode(line)
    local chunk, mistake = loadstring(request.lua)
    if not chunk then
        return vim.json.encode({ error = mistake })
    end
    local done, value = pcall(chunk, unpack(request.arguments))
    if not done then
        return vim.json.encode({ error = tostring(value) })
    end
    return vim.json.encode({ value = value == nil and vim.NIL or value })
end

local server = assert(vim.uv.new_pipe())
assert(server:bind(vim.env.CALOMEL_TEST_SOCKET))
server:listen(1, function()
    local peer = assert(vim.uv.new_pipe())
    server:accept(peer)
    local rest = ""
    peer:read_start(function(_, data)
        if not data then
            vim.schedule(function()
                vim.cmd("qall!")
            end)
            return
        end
        rest = rest .. data
        while true do
            local line, behind = rest:match("^([^\n]*)\n(.*)$")
            if not line then
                return
            end
            rest = behind
            vim.schedule(function()
                peer:write(answer(line) .. "\n")
            end)
        end
    end)
end)
