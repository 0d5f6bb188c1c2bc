//! The `meshweft` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    meshweft_examples::cli::main(meshweft_examples::EXAMPLES)
}
