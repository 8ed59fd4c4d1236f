# syntax=docker/dockerfile:1
# Five images from one build: docker build --target ingest|planner|executor|reporter|egress -t journeyman/<service>:0.1.0 .
# A pool of executors with its own toolchains: --target executor --build-arg EXECUTOR_BASE=<a Debian 12 or newer image>.
ARG RUST_IMAGE=rust:1-bookworm
ARG RUNTIME_BASE=debian:bookworm-slim
ARG EXECUTOR_BASE=debian:bookworm-slim

FROM ${RUST_IMAGE} AS builder
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY proto proto
COPY crates crates
COPY services services
COPY cli cli
COPY e2e e2e
# One call for the five services: they share nearly all of their crates.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p ingest -p planner -p executor -p reporter -p egress \
    && install -D -t /out target/release/ingest target/release/planner target/release/executor \
       target/release/launcher target/release/parser target/release/reporter target/release/inspector target/release/egress

FROM ${RUNTIME_BASE} AS runtime
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
# No name in /etc/passwd is needed; Kubernetes checks the number.
USER 65532:65532
WORKDIR /

FROM runtime AS ingest
COPY --from=builder /out/ingest /usr/local/bin/ingest
EXPOSE 7401
ENTRYPOINT ["/usr/local/bin/ingest"]

FROM runtime AS planner
COPY --from=builder /out/planner /usr/local/bin/planner
EXPOSE 7402
ENTRYPOINT ["/usr/local/bin/planner"]

FROM ${EXECUTOR_BASE} AS executor
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=builder /out/executor /out/launcher /out/parser /usr/local/bin/
USER 65532:65532
WORKDIR /
EXPOSE 7403
ENTRYPOINT ["/usr/local/bin/executor"]

FROM runtime AS reporter
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
USER 65532:65532
COPY --from=builder /out/reporter /out/inspector /usr/local/bin/
EXPOSE 7404
ENTRYPOINT ["/usr/local/bin/reporter"]

FROM runtime AS egress
COPY --from=builder /out/egress /usr/local/bin/egress
EXPOSE 3128
ENTRYPOINT ["/usr/local/bin/egress"]
