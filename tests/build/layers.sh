#!/bin/sh
# Who may know whom: docs/design.md, "Who may know whom". Usage: layers.sh [ROOT]
# Prints the lines that break a rule, and at last `N passed, N failed`.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2

passed=0 failed=0

# code FILE...: what the compiler sees of them, as `FILE:LINE:text`, without what follows `//`.
code() { grep -nH '' "$@" | sed 's|//.*||'; }

includes() { code "$@" | grep -E ':[0-9]+:[[:space:]]*#[[:space:]]*include'; }

# rule NAME OFFENCES: passes when there are none.
rule() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$1" "$2"
    fi
}

# A rule about no file at all would hold for ever.
for files in include/fslock/*.hpp src/core/*.hpp src/os/*.hpp src/engine/*.hpp src/cli/*.hpp examples/*.cpp; do
    [ -f "$files" ] || { echo "no $files: $(pwd) is not the source tree"; echo "0 passed, 1 failed"; exit 1; }
done

headers=$(find include -name '*.hpp')
core=$(find src/core -name '*.?pp')
os=$(find src/os -name '*.?pp')
engine=$(find src/engine -name '*.?pp')
cli=$(find src/cli -name '*.?pp')

standard='<(algorithm|array|atomic|cerrno|charconv|chrono|compare|concepts|coroutine|cstddef|cstdint|cstring|exception|filesystem|functional|initializer_list|iterator|limits|map|memory|new|numeric|optional|set|span|string|string_view|system_error|tuple|type_traits|unordered_map|unordered_set|utility|variant|vector)>'

rule 'src/core includes the standard library without threads, clocks or streams, and simdjson; no Asio, no header of a system' \
    "$(includes $core | grep '<' | grep -vE "include[[:space:]]*($standard|<simdjson\.h>)")"

rule 'src/core includes its own headers, the world, and the values of the interface' \
    "$(includes $core | grep '"' | grep -vE 'include[[:space:]]*"([a-z_0-9]+\.hpp|\.\./os/(world|result|call)\.hpp|fslock/(error|event|options)\.hpp)"')"

rule 'src/core asks no clock, makes no thread, and waits for nothing' \
    "$(code $core | grep -E '(steady|system|high_resolution|file|utc)_clock::now|[A-Za-z_]clock::now|this_thread|std::j?thread\b|std::async|\b(clock_gettime|gettimeofday|std::time|usleep|nanosleep|getpid|std::rand|random_device)[[:space:]]*\(')"

rule 'src/core makes no system call by name' \
    "$(code $core | grep -E '(^|[^A-Za-z0-9_>:])::[a-z_0-9]+[[:space:]]*\(')"

rule 'src/os knows neither the engine, nor the protocol, nor Asio' \
    "$(includes $os | grep -E 'engine/|core/|asio')"

rule 'src/engine meets the system in the world only' \
    "$(includes $engine | grep -E '<(sys/|linux/|unistd\.h|fcntl\.h|poll\.h|pthread\.h|signal\.h|csignal)|"\.\./os/(linux|plain|system|process_state|retry)')"

rule 'src/cli knows the interface only' \
    "$(includes $cli | grep '"' | grep -vE 'include[[:space:]]*"([a-z_]+\.hpp|fslock/[a-z_]+\.hpp)"')"

rule 'an example includes what is installed, and nothing else of ours' \
    "$(includes examples/*.cpp | grep '"')"

rule 'an installed header includes no other room' \
    "$(includes $headers | grep -E 'src/|core/|engine/|os/|\.\./\.\.')"

rule 'an installed header includes no header of a system and not simdjson' \
    "$(includes $headers | grep -E '<(sys/|linux/|unistd\.h|fcntl\.h|poll\.h|pthread\.h|signal\.h|simdjson)')"

rule 'only fslock/detail/asio*.hpp include Asio' \
    "$(includes $headers | grep -E 'FSLOCK_ASIO_HEADER|<(boost/)?asio' | grep -v '^include/fslock/detail/asio[a-z_]*\.hpp:')"

rule 'Asio is included by FSLOCK_ASIO_HEADER, so that it can be that of Boost' \
    "$(includes $headers $engine | grep -E '<(boost/)?asio')"

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
