# The service, its client and the demo in one image. How to use it: docs/how-to/docker.md
#
# BASE_IMAGE  python:3.11-slim-bookworm, or any Debian bookworm with python3 and python3-venv.
# PIP_ARGS    further arguments of pip install. The default index may hold torch for CUDA, several GB of it; name an
#             index of CPU builds to get the small one: PIP_ARGS="--extra-index-url URL". They stay out of the image.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS packages
ARG PIP_ARGS=""
WORKDIR /build
# Only pip's own environment has pip; the one that goes into the image does without.
RUN python3 -m venv pip && python3 -m venv --without-pip /opt/venv
COPY constraints.txt pyproject.toml ./
COPY client/pyproject.toml client/
# What others wrote, in a layer of its own: a change of our code downloads nothing again. Without openYuanrong (the demo
# here keeps its bytes in memory) and without torch's C++ headers and test programs.
RUN python3 -c "import tomllib; \
read = lambda file: tomllib.load(open(file, 'rb'))['project']; \
server, client = read('pyproject.toml'), read('client/pyproject.toml'); \
wanted = server['dependencies'] + server['optional-dependencies']['demo'] + client['dependencies']; \
print(*(line for line in wanted if not line.startswith(('batchmeta', 'openyuanrong'))), sep='\n')" > requirements.txt \
    && pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --disable-pip-version-check \
        ${PIP_ARGS} -c constraints.txt -r requirements.txt \
    && rm -rf /opt/venv/lib/python3*/site-packages/torch/include /opt/venv/lib/python3*/site-packages/torch/test

FROM ${BASE_IMAGE}
RUN useradd --uid 10001 --user-group --no-log-init --no-create-home --home-dir /data batchmeta \
    && install -d -o batchmeta -g batchmeta -m 0750 /data
COPY --from=packages /opt/venv /opt/venv
# It runs from its folder, as from a checkout; the client lies beside it.
WORKDIR /srv/batchmeta
COPY client/src ./
COPY app app/
COPY core core/
COPY crew crew/
COPY demo demo/
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
VOLUME /data
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-c", "\
from http.client import HTTPConnection; \
service = HTTPConnection('127.0.0.1', 8700, timeout=4); \
service.request('GET', '/readyz'); \
raise SystemExit(service.getresponse().status != 200)"]
# Beyond loopback of the container, so that a port can be published: publish it on 127.0.0.1 only.
CMD ["python", "-m", "app", "--host", "0.0.0.0", "--port", "8700", "--allow-unauthenticated", \
    "--journal", "file:///data/journal"]
