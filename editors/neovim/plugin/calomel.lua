if vim.g.loaded_calomel then
    return
end
vim.g.loaded_calomel = true

vim.api.nvim_create_user_command("Calomel", function(command)
    require("calomel.command").run(command.fargs)
end, {
    nargs = "*",
    desc = "Calomel: status, toggle, snooze, log, context, restart",
    complete = function(lead, line)
        return require("calomel.command").complete(lead, line)
    end,
})
