//! The connection to the daemon: made on first use, and again after the daemon was gone.

use std::sync::{Mutex, PoisonError};

use heeler_client::{Address, Client, ConnectOptions};

use crate::problem::Problem;

#[derive(Debug)]
pub(super) struct Daemon {
    address: Option<Address>,
    connect: ConnectOptions,
    client: Mutex<Option<Client>>,
}

impl Daemon {
    pub(super) fn new(address: Option<Address>, connect: ConnectOptions) -> Self {
        Self {
            address,
            connect,
            client: Mutex::default(),
        }
    }

    pub(super) async fn client(&self) -> Result<Client, Problem> {
        if let Some(client) = self.present() {
            return Ok(client);
        }
        let connect = self.connect.clone();
        // Two calls may connect at the same time: one of the connections is used from then on.
        let client = match &self.address {
            Some(address) => Client::connect_with(address.clone(), connect).await?,
            None => Client::connect_or_start_with(connect).await?,
        };
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(slot.get_or_insert(client).clone())
    }

    pub(super) fn forget(&self) {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = None;
    }

    fn present(&self) -> Option<Client> {
        let slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        slot.clone()
    }
}
