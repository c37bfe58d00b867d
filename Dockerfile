# An image that holds cotter and nothing else: `make image` builds it. `make image-check` lays out the last stage
# without an engine and tries it.
FROM rust:1 AS build
WORKDIR /cotter-build
# The crates are a layer of their own, which lasts until one of these files changes.
COPY Cargo.toml Cargo.lock build.rs Makefile ./
COPY image/static-library.sh image/
RUN mkdir src && echo 'fn main() {}' >src/main.rs && make static
COPY src src
# What was copied is older than what was built in its place.
RUN touch src/main.rs && make static && mv target/*/release/cotter /cotter

FROM scratch
COPY --from=build /cotter /cotter
# Nobody's number, and no name, since there is no list of names.
USER 65532:65532
ENTRYPOINT ["/cotter"]
