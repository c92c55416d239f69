# An image of the static program alone (ci/static.sh builds it):
#   cp target/static/pageout docs/examples/ && docker build -t pageout:static -f docs/examples/record.Dockerfile docs/examples
FROM scratch
COPY pageout /pageout
ENTRYPOINT ["/pageout"]
