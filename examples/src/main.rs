//! The `meshweft` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    meshweft_command::cli::main(&meshweft_examples::PROGRAMS)
}
