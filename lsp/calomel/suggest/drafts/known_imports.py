"""Where names of the standard libraries come from: those that are used in most programs."""

from __future__ import annotations

import sys
from typing import Final

# Names that Python's modules are usually asked for by `from module import name`.
_PYTHON: Final = {
    "abc": "ABC abstractmethod",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "collections.abc": "AsyncIterator Awaitable Callable Collection Generator Hashable Iterable Iterator Mapping"
    " MutableMapping Sequence",
    "contextlib": "AsyncExitStack ExitStack asynccontextmanager contextmanager nullcontext suppress",
    "copy": "deepcopy",
    "dataclasses": "asdict astuple dataclass field fields",
    "datetime": "date datetime timedelta timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum IntFlag StrEnum",
    "fractions": "Fraction",
    "functools": "cache cached_property lru_cache partial reduce singledispatch total_ordering wraps",
    "itertools": "accumulate chain combinations count groupby islice pairwise permutations product repeat takewhile"
    " zip_longest",
    "operator": "attrgetter itemgetter",
    "pathlib": "Path PurePath PurePosixPath",
    "tempfile": "NamedTemporaryFile TemporaryDirectory",
    "textwrap": "dedent indent",
    "threading": "Lock RLock Thread",
    "types": "MappingProxyType SimpleNamespace TracebackType",
    "typing": "Annotated Any ClassVar Final Generic Literal NamedTuple NoReturn Optional Protocol Self TYPE_CHECKING"
    " TypeAlias TypeVar TypedDict Union cast overload",
    "unittest.mock": "AsyncMock MagicMock Mock patch",
    "uuid": "UUID uuid4",
}
_GO: Final = (
    "bufio bytes cmp context embed errors expvar flag fmt hash io iter log maps os path plugin reflect regexp runtime"
    " slices sort strconv strings sync syscall testing time unicode unique unsafe compress/gzip container/heap"
    " container/list crypto/hmac crypto/md5 crypto/sha256 crypto/tls crypto/x509 database/sql encoding/base64"
    " encoding/binary encoding/csv encoding/hex encoding/json encoding/xml go/ast go/parser go/token html/template"
    " io/fs log/slog math math/big math/bits net net/http net/http/httptest net/netip net/url os/exec os/signal"
    " path/filepath runtime/debug sync/atomic testing/fstest text/tabwriter unicode/utf8"
)
_RUST: Final = {
    "std::borrow": "Borrow Cow",
    "std::cell": "Cell OnceCell RefCell",
    "std::cmp": "Ordering Reverse",
    "std::collections": "BTreeMap BTreeSet BinaryHeap HashMap HashSet VecDeque",
    "std::error": "Error",
    "std::ffi": "CStr CString OsStr OsString",
    "std::fmt": "Debug Display Formatter",
    "std::fs": "File OpenOptions",
    "std::future": "Future",
    "std::io": "BufRead BufReader BufWriter Read Seek Write",
    "std::marker": "PhantomData",
    "std::net": "IpAddr Ipv4Addr Ipv6Addr SocketAddr TcpListener TcpStream",
    "std::ops": "Deref DerefMut Index IndexMut Range",
    "std::path": "Path PathBuf",
    "std::pin": "Pin",
    "std::process": "Command Stdio",
    "std::rc": "Rc Weak",
    "std::str": "FromStr",
    "std::sync": "Arc Condvar Mutex OnceLock RwLock",
    "std::task": "Context Poll Waker",
    "std::time": "Duration Instant SystemTime",
}
_PYTHON_NAMES: Final = {name: module for module, names in _PYTHON.items() for name in names.split()}
_RUST_NAMES: Final = {name: module for module, names in _RUST.items() for name in names.split()}
_GO_NAMES: Final = {path.rpartition("/")[2]: path for path in _GO.split()}


def known_import(language: str, name: str, *, qualifies: bool) -> str | None:
    """The line that brings a name in; None when it is not one of these.

    Args:
        language: `python`, `go` or `rust`.
        name: as it is used.
        qualifies: something of it is used: `name.other`.
    """
    if language == "python":
        if qualifies and name in sys.stdlib_module_names and name not in _PYTHON_NAMES:
            return f"import {name}"
        return f"from {_PYTHON_NAMES[name]} import {name}" if name in _PYTHON_NAMES else None
    if language == "go":
        return f'"{_GO_NAMES[name]}"' if qualifies and name in _GO_NAMES else None
    if language == "rust":
        return f"use {_RUST_NAMES[name]}::{name};" if name in _RUST_NAMES else None
    return None
