//! A whole process in this one: it works on files and answers requests.

use landfall_server::app::App;
use landfall_server::http;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct Serving {
    /// The host and the port.
    pub address: String,
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

impl Serving {
    pub async fn start(app: &App) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { app.run(stop).await }
        });
        let serving = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { http::serve(listener, http::router(app.clone()), &app.config.http, stop).await }
        });
        Ok(Self { address, stop, tasks: [running, serving] })
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        for task in self.tasks {
            task.await?;
        }
        Ok(())
    }
}
