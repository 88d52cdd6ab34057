# `docker build .` compiles this checkout. The release has goreleaser's binary
# put into the same image: --target release.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION=$VERSION

# The last image has no shell to make a folder with.
FROM --platform=$BUILDPLATFORM busybox:1.37 AS folder
RUN mkdir /data

FROM gcr.io/distroless/static-debian12:nonroot AS base
WORKDIR /srv
COPY Caddyfile LICENSE NOTICE ./
COPY --from=folder --chown=nonroot:nonroot /data ./data
ENV XDG_DATA_HOME=/srv/data XDG_CONFIG_HOME=/srv/data
VOLUME /srv/data
EXPOSE 8080
ENTRYPOINT ["./backstory"]
CMD ["run", "--config", "Caddyfile"]

FROM base AS release
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/backstory ./

FROM base
COPY --from=build /src/backstory ./
