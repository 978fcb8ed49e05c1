# fumehood with its sandbox, for local use, self-hosted runners and servers. What it needs
# to run, and why a Docker action cannot be used: docs/CONTAINER.md.
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY . .
RUN go run ./tools/release --arch "$(go env GOARCH)" --out /out \
 && mkdir /dist && tar -xzf /out/fumehood_*.tar.gz -C /dist

FROM ${BASE_IMAGE}
RUN command -v git || { apt-get update && apt-get install -y --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /dist/ /opt/fumehood/
RUN ln -s /opt/fumehood/fumehood /usr/local/bin/fumehood
# The root of a container is an overlay, which cannot be mounted with other user ids.
VOLUME ["/tmp", "/work"]
WORKDIR /work
ENTRYPOINT ["fumehood"]
CMD ["--help"]
