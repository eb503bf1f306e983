//! `heeler-caller ADDRESS`: makes one List call and prints the result. Tests run it as another user.

use heeler_tests::{Api, refusal::Refusal, v1::ListRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let address = std::env::args().nth(1).expect("an address");
    let api = match Api::connect(&address).await {
        Ok(api) => api,
        Err(error) => return println!("not connected: {error:?}"),
    };
    match api.list(ListRequest::default()).await {
        Ok(_) => println!("listed"),
        Err(status) => {
            let refusal = Refusal::of(&status);
            println!(
                "{:?} {} {:?}",
                refusal.code, refusal.reason, refusal.metadata
            );
        }
    }
}
