//! Registers `calomel lsp` in Zed: completions and the code action "Apply next edit".
//!
//! Edit predictions come from `calomel serve` without this extension. Not compiled in CI.

use zed_extension_api::serde_json::{json, Map, Value};
use zed_extension_api::settings::LspSettings;
use zed_extension_api::{
    register_extension, Command, Extension, LanguageServerId, Result, Worktree,
};

const SERVER: &str = "calomel";

struct Calomel;

impl Extension for Calomel {
    fn new() -> Self {
        Self
    }

    /// The program of the setting `lsp.calomel.binary.path`, else the one on the PATH.
    fn language_server_command(
        &mut self,
        _: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Command> {
        let binary = LspSettings::for_worktree(SERVER, worktree)
            .ok()
            .and_then(|settings| settings.binary);
        let (path, arguments) = match binary {
            Some(binary) => (binary.path, binary.arguments),
            None => (None, None),
        };
        let command = path.or_else(|| worktree.which(SERVER)).ok_or_else(|| {
            "No program `calomel` on the PATH: install it, or set lsp.calomel.binary.path"
                .to_string()
        })?;
        Ok(Command {
            command,
            args: arguments.unwrap_or_else(|| vec!["lsp".to_string()]),
            env: worktree.shell_env(),
        })
    }

    /// Zed has no inline completion of language servers: suggestions come as completions, unless the user says no.
    fn language_server_initialization_options(
        &mut self,
        _: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let mut options = Map::from_iter([("completion_item".to_string(), json!(true))]);
        let settings = LspSettings::for_worktree(SERVER, worktree).ok();
        if let Some(Value::Object(own)) =
            settings.and_then(|settings| settings.initialization_options)
        {
            options.extend(own);
        }
        Ok(Some(Value::Object(options)))
    }
}

register_extension!(Calomel);
