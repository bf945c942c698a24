"""From a clone to a next edit accepted, in Neovim and in VS Code, by what the README says: `make first-hour`."""
