//! `tidegraph prove`: the proof that a client sends to a service with `--iam-callers`.

use super::access::Proofs;
use anyhow::Context;
use aws_credential_types::provider::ProvideCredentials;
use clap::Args;
use std::process::ExitCode;
use tidegraph_platform::{Clock, RealClock};

/// Flags of `prove`.
#[derive(Args, Debug)]
pub struct Prove {
    #[command(flatten)]
    proofs: Proofs,
}

impl Prove {
    /// Prints a proof of the owner of the AWS credentials that the environment, the profile or the machine has. It
    /// holds for 15 minutes.
    ///
    /// # Errors
    ///
    /// If there are no credentials, or a flag is wrong.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let sts = self.proofs.sts()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let credentials = runtime.block_on(async {
            let chain = aws_config::default_provider::credentials::default_provider().await;
            chain.provide_credentials().await
        });
        let credentials = credentials.context("no credentials of AWS were found")?;
        let proof = sts.prove(&credentials, RealClock::new().wall()).map_err(anyhow::Error::msg)?;
        println!("{proof}");
        Ok(ExitCode::SUCCESS)
    }
}
