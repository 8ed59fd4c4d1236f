# Seven images from one build: docker build --target ingest|planner|executor|reporter|egress|console|cli -t journeyman/<target>:0.1.0 .
# A pool of executors with its own toolchains: --target executor --build-arg EXECUTOR_BASE=<a Debian 12 or newer image>.
# Pin the bases by digest where it matters: --build-arg RUNTIME_BASE=debian@sha256:…, and so on.
# Programs that were built elsewhere: --build-arg PROGRAMS=<an image with them in /out>.
# The commit that each start logs: --build-arg COMMIT=$(git rev-parse HEAD).
# An eighth target, stand-ins, is what `make cluster-test` plays against; it is no part of what is deployed.
ARG RUST_IMAGE=compiler
ARG RUNTIME_BASE=debian:12.12-slim
ARG EXECUTOR_BASE=debian:12.12-slim
ARG PROGRAMS=builder
ARG STAND_INS=stand-ins-builder

# Dependabot raises versions in FROM lines, and none in arguments.
FROM rust:1.95.0-bookworm AS compiler

FROM ${RUST_IMAGE} AS builder
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY proto proto
COPY crates crates
COPY services services
COPY cli cli
COPY e2e e2e
# The command contains the documentation, and the manifests that `journeyman setup kubernetes` writes.
COPY docs docs
COPY k8s k8s
COPY scripts/sbom.py scripts/sbom.py
# The folder has no history, so the caller names the commit. stand-ins-builder inherits it.
ARG COMMIT=unknown
ENV JOURNEYMAN_COMMIT=$COMMIT
# One call for everything: the programs share nearly all of their crates.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p ingest -p planner -p executor -p reporter -p egress -p journeyman-console -p journeyman \
    && install -D -t /out target/release/ingest target/release/planner target/release/executor \
       target/release/launcher target/release/parser target/release/reporter target/release/inspector target/release/egress target/release/console \
       target/release/journeyman \
    && python3 scripts/sbom.py >/out/sbom.cdx.json

FROM ${PROGRAMS} AS programs

FROM builder AS stand-ins-builder
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p e2e --bin scenarios && install -D -t /out target/release/scenarios

FROM ${STAND_INS} AS stand-ins-program

FROM ${RUNTIME_BASE} AS runtime
# A base that has them already is left as it is.
RUN [ -e /etc/ssl/certs/ca-certificates.crt ] || { \
      apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*; }
# What all programs are made of, in CycloneDX.
COPY --from=programs /out/sbom.cdx.json /usr/share/doc/journeyman/sbom.cdx.json
# No name in /etc/passwd is needed; Kubernetes checks the number.
USER 65532:65532
WORKDIR /

FROM runtime AS ingest
COPY --from=programs /out/ingest /usr/local/bin/ingest
EXPOSE 7401
ENTRYPOINT ["/usr/local/bin/ingest"]

FROM runtime AS planner
COPY --from=programs /out/planner /usr/local/bin/planner
EXPOSE 7402
ENTRYPOINT ["/usr/local/bin/planner"]

FROM ${EXECUTOR_BASE} AS executor
USER root
RUN { [ -e /etc/ssl/certs/ca-certificates.crt ] && command -v git >/dev/null; } || { \
      apt-get update && apt-get install --yes --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/*; }
COPY --from=programs /out/sbom.cdx.json /usr/share/doc/journeyman/sbom.cdx.json
COPY --from=programs /out/executor /out/launcher /out/parser /usr/local/bin/
USER 65532:65532
WORKDIR /
EXPOSE 7403 7406
ENTRYPOINT ["/usr/local/bin/executor"]

FROM runtime AS reporter
USER root
RUN command -v git >/dev/null || { \
      apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*; }
USER 65532:65532
COPY --from=programs /out/reporter /out/inspector /usr/local/bin/
EXPOSE 7404
ENTRYPOINT ["/usr/local/bin/reporter"]

FROM runtime AS egress
COPY --from=programs /out/egress /usr/local/bin/egress
EXPOSE 3128
ENTRYPOINT ["/usr/local/bin/egress"]

FROM runtime AS console
COPY --from=programs /out/console /usr/local/bin/console
EXPOSE 7405
ENTRYPOINT ["/usr/local/bin/console"]

FROM runtime AS cli
COPY --from=programs /out/journeyman /usr/local/bin/journeyman
ENTRYPOINT ["/usr/local/bin/journeyman"]

FROM runtime AS stand-ins
USER root
RUN command -v git >/dev/null || { \
      apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*; }
USER 65532:65532
COPY --from=stand-ins-program /out/scenarios /usr/local/bin/scenarios
EXPOSE 443
ENTRYPOINT ["/usr/local/bin/scenarios", "cluster-test", "stand-ins"]
