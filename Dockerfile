# Cross-compiles on the builder's own platform; BUILDPLATFORM, TARGETOS and TARGETARCH are BuildKit's.
FROM --platform=${BUILDPLATFORM} golang:1.26 AS build
WORKDIR /src

# The modules are a layer of their own, downloaded again only when they change.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT=unknown
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath \
    -ldflags "-s -w -X github.com/ktechhub/configwatch/internal/version.Version=${VERSION} \
    -X github.com/ktechhub/configwatch/internal/version.Commit=${COMMIT}" \
    -o /manager ./cmd

FROM gcr.io/distroless/static:nonroot
ARG VERSION=unknown
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="configwatch" \
      org.opencontainers.image.description="Restarts workloads when the ConfigMaps and Secrets they use change" \
      org.opencontainers.image.source="https://github.com/ktechhub/configwatch" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
