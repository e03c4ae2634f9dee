"""OpenStack Swift with its S3 interface in one process: swift_server.py FOLDER PORT.

Debian's own Python runs it, which has the package python3-swift. Objects are kept in memory. The
account is test:tester, its key testing. It listens when it has printed "ready".
"""

import os
import sys

import eventlet

eventlet.patcher.monkey_patch(all=False, socket=True, select=True, thread=True, time=True)

from swift.common import utils, wsgi  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402

folder, first = sys.argv[1], int(sys.argv[2])
KINDS = {"account": "account", "container": "container", "object": "mem_object"}
HASHES = "[swift-hash]\nswift_hash_path_suffix = tests\n"
COMMON = f"""[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
log_address = /dev/null
"""
PROXY = """
[pipeline:main]
pipeline = catch_errors listing_formats bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
"""


class Cached(dict):
    """An application with a cache in memory, where Swift looks for memcached."""

    def __init__(self, app):
        self.app = app

    def __bool__(self):
        return True

    def __call__(self, env, start):
        env["swift.cache"] = self
        return self.app(env, start)

    def get(self, key, raise_on_error=False):
        return dict.get(self, key)

    def set(self, key, value, **options):
        self[key] = value

    def delete(self, key, server_key=None):
        self.pop(key, None)


def written(name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


os.makedirs(f"{folder}/devices/d1")
utils.SWIFT_CONF_FILE = written("swift.conf", HASHES)
confs = [written("proxy.conf", COMMON + PROXY)]
for number, (kind, program) in enumerate(KINDS.items(), 1):
    at = {"ip": "127.0.0.1", "port": first + number}
    at |= {f"replication_{name}": value for name, value in at.items()}
    ring = RingBuilder(1, 1, 0)
    ring.add_dev({"id": 0, "region": 1, "zone": 1, "device": "d1", "weight": 1, **at})
    ring.rebalance()
    ring.get_ring().save(f"{folder}/{kind}.ring.gz")
    app = f"[pipeline:main]\npipeline = app\n[app:app]\nuse = egg:swift#{program}\n"
    confs.append(written(f"{kind}.conf", COMMON + app))
servers = []
for number, conf in enumerate(confs):
    app = wsgi.loadapp(conf, global_conf={"log_name": conf})
    socket = eventlet.listen(("127.0.0.1", first + number))
    told = {"log_output": False, "protocol": wsgi.SwiftHttpProtocol}
    app = app if number else Cached(app)
    servers.append(eventlet.spawn(eventlet.wsgi.server, socket, app, **told))
print("ready", flush=True)
for server in servers:
    server.wait()
