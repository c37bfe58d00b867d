#!/bin/sh
# Builds the image under the name given, with the first engine that is there.
set -eu
cd "$(dirname "$0")/.."
for engine in docker podman buildah; do
  if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then
    exec "$engine" build --tag "$1" .
  fi
done
echo "make image: it needs docker, podman or buildah, and none of them answers here (\`docker info\` says why);" >&2
echo "make image-check tries what the image holds without one" >&2
exit 1
