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

vim.api.nvim_create_user_command("CalomelModel", function(command)
    require("calomel.model").choose(command.args)
end, {
    nargs = "?",
    desc = "Calomel: choose a model by NAME, by the address of its server, or from a list; nano `meanwhile`",
})

vim.api.nvim_create_user_command("CalomelInstall", function(command)
    local install = require("calomel.install")
    if command.bang then
        install.stop()
    else
        install.run(command.args)
    end
end, {
    nargs = "?",
    bang = true,
    desc = "Calomel: install the server for Neovim only, from a WHEEL; with ! stop the installation",
    complete = "file",
})
