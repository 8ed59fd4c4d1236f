//! The whole service over real HTTP and a real NATS server.

#[cfg(test)]
mod authority;
#[cfg(test)]
mod automation;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod lone_comments;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod polls;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod scope;
#[cfg(test)]
mod service;
#[cfg(test)]
mod webhooks;
