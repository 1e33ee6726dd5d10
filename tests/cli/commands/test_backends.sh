# info, why and caps: which plugins there are, and why they do or do not serve.
source "$(dirname "$0")/../../support/lib.sh"
tool=$1 p=$2
weft() { "$tool" "$@"; }
export WEFT_PLUGIN_PATH=$p/good:$p/better:$p/no-library

# info: exit code 0 only when what WEFT_BACKEND asks for is usable
expect 0 "better" weft info
expect 0 "vendor library missing  libvendor.so.2 not found" weft info
expect 0 "serves" weft info
WEFT_BACKEND=good expect 0 "good" weft info
WEFT_BACKEND=no-library expect 1 "libvendor.so.2 not found" weft info
WEFT_BACKEND=nosuch expect 1 "known plugins: good, better, no-library" weft info
WEFT_BACKEND=beter expect 1 "did you mean better?" weft info
WEFT_BACKEND=no-library,good expect 0 "good" weft info
WEFT_BACKEND=NCCL expect 1 "write nccl" weft info
WEFT_BACKEND=gloo_cpu expect 1 "write gloo-cpu" weft info
WEFT_BACKEND=^good,better expect 1 "the list has no auto" weft info
WEFT_BACKEND=$p/any-file/mine.so expect 0 "mine" weft info
WEFT_BACKEND=$p/major/libweft_plugin_major.so expect 1 "the major numbers must be equal" weft info
WEFT_BACKEND=/no/such.so expect 1 "not found" weft info
WEFT_PLUGIN_PATH=relative expect 0 "" weft info --help
WEFT_PLUGIN_PATH=relative:$p/good expect 0 \
    'WEFT_PLUGIN_PATH: "relative" is not searched, because it is not an absolute path' weft info
WEFT_PLUGIN_PATH=$p/good lacks "is not searched" weft info

# a misspelled variable is pointed out, by every command that reads the environment
WEFT_BAKEND=x expect 0 "weft does not know WEFT_BAKEND; did you mean WEFT_BACKEND?" weft info
WEFT_BAKEND=x expect 0 "did you mean WEFT_BACKEND?" weft why
WEFT_BAKEND=x expect 0 "did you mean WEFT_BACKEND?" weft env
WEFT_TEST_SOMETHING=x lacks "does not know" weft info

# a machine without GPU and its libraries
if nvidia-smi -L >/dev/null 2>&1; then
    echo "skipped: nccl without a GPU, as there is one here"
else
    WEFT_BACKEND=nccl expect 1 "nccl" weft info
fi

json weft info --json -- 'it["comm"] == "better"' 'it["symm"] is None' 'it["error"] is None' \
    'it["backend"] == "auto"' 'it["plugins"][0]["name"] == "good"' \
    'it["plugins"][0]["tables"] == ["device", "comm"]' 'it["plugins"][2]["usable"] is False' \
    'it["plugins"][2]["status"] == "vendor library missing"' \
    'sorted(it) == ["backend", "backend_from", "comm", "error", "plugins", "symm"]' \
    'sorted(it["plugins"][0]) == ["abi_major", "abi_minor", "build", "description", "devices",
        "file", "library", "name", "reason", "score", "status", "tables", "usable", "version"]'
WEFT_BACKEND=nosuch json weft info --json -- '"known" in it["error"]' \
    'it["plugins"][-1]["file"] is None' 'it["plugins"][-1]["status"] == "not found"'

# why: every directory, file and decision
WEFT_PLUGIN_PATH=relative:$p/good expect 0 "relative (WEFT_PLUGIN_PATH): not searched" weft why
expect 0 "directory $p/good (WEFT_PLUGIN_PATH): 1 plugin file" weft why
expect 0 "communication: better serves" weft why
expect 0 "usable: 1 device, score 5000" weft why good
lacks "libweft_plugin_better.so" weft why good
expect 1 "libvendor.so.2 not found" weft why no-library
expect 1 "there is no plugin \"nosuch\"; the directories above have good, better, no-library" weft why nosuch
expect 1 "there is no plugin \"no\"; did you mean \"no-library\"? the directories above have good, better, no-library" weft why no
expect 1 "did you mean \"better\"?" weft why beter
WEFT_BACKEND=^good expect 1 "which excludes it" weft why good
expect 2 "unexpected argument \"b\"" weft why a b
json weft why --json -- 'it["usable"] is True' 'it["name"] is None' \
    'it["trace"][0]["text"] == "WEFT_BACKEND is \"auto\""' \
    'sorted(it) == ["backend", "error", "name", "trace", "usable"]'
json weft why no-library --json -- 'it["usable"] is False' 'it["name"] == "no-library"'

# two names, two roles
export WEFT_PLUGIN_PATH=$WEFT_PLUGIN_PATH:$p/symm
WEFT_BACKEND=good,symm expect 0 "serves symmetric memory: " weft info
WEFT_BACKEND=good,symm expect 0 "symmetric memory: symm serves" weft why
WEFT_BACKEND=good,symm json weft info --json -- 'it["comm"] == "good"' 'it["symm"] == "symm"'
WEFT_BACKEND=symm,good json weft info --json -- 'it["comm"] == "symm"' 'it["symm"] == "symm"'

# caps: collective x dtype x reduction
expect 0 "all_reduce sum" weft caps good
expect 0 "N native" weft caps "$p/any-file/mine.so"
expect 1 "with a device it would do at most" weft caps no-library
expect 1 "known plugins: good, better, no-library" weft caps nosuch
expect 1 "No such file" weft caps ./nosuch.so
expect 1 "libweft_plugin_nosuch.so: No such file" weft caps libweft_plugin_nosuch.so
# A file is found without ./, and by the name of the plugin that WEFT_BACKEND names by path.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$p/any-file/mine.so" "$folder/libweft_plugin_mine.so"
cd "$folder" || exit 1
expect 0 "N native" weft caps libweft_plugin_mine.so
WEFT_BACKEND="good,$folder/libweft_plugin_mine.so" expect 0 "N native" weft caps mine
expect 1 "libweft_plugin_mine.so is not in" weft caps mine
expect 1 "a path to a plugin must begin with /; write \$PWD/libweft_plugin_mine.so" weft info --backend libweft_plugin_mine.so
expect 2 "give one NAME" weft caps
expect 2 "give one NAME" weft caps auto
expect 2 "give one NAME" weft caps good,better
expect 2 "expected a number" weft caps good --ranks x
WEFT_PLUGIN_PATH=$p/memory-only expect 0 "memory only" weft caps memory-only
json weft caps good --ranks 7 --json -- 'it["ranks"] == 7' \
    'it["support"][0]["dtypes"]["f32"] == "native"' \
    'it["support"][0]["dtypes"]["f64"] == "emulated"' \
    'it["support"][1]["dtypes"]["f32"] == "no"' 'it["support"][1]["reduction"] == "prod"' \
    'it["device"] is True and it["description"]' \
    'sorted(it) == ["comm", "description", "device", "kernel", "name", "ranks", "reason", "status",
        "support", "symm", "usable", "version"]'

for command in info why caps; do
    expect 0 "example:" weft "$command" --help
    expect 2 "unknown option" weft "$command" --jsn
    lacks $'\033' weft "$command" --help
done
lacks $'\033' weft info

# files that other users could replace are not opened, and the sentence names the directory: plugins,
# and vendor libraries that a variable names
open=$(mktemp -d)
trap 'rm -rf "$open" "$folder"' EXIT
mkdir -m 0755 "$open/all" "$open/mine"
cp "$p/good/libweft_plugin_good.so" "$open/all"
ln -s "$open/all/libweft_plugin_good.so" "$open/mine"
chmod 0777 "$open/all"
WEFT_PLUGIN_PATH=$open/all expect 1 \
    "libweft_plugin_good.so: not trusted: $open/all belongs to user $(id -u) and has mode 0777, so every user may replace its files" \
    weft why good
WEFT_PLUGIN_PATH=$open/mine expect 1 "leads to $open/all/libweft_plugin_good.so: $open/all belongs to user" weft why good
WEFT_PLUGIN_PATH=$open/all expect 1 "chmod go-w" weft why good
chmod 1777 "$open/all"
WEFT_PLUGIN_PATH=$open/all expect 1 "the sticky bit protects existing files only" weft why good
WEFT_CUDA_LIB=$open/all/libweft_plugin_good.so expect 1 \
    "WEFT_CUDA_LIB=$open/all/libweft_plugin_good.so cannot be opened: $open/all belongs to user" weft why nccl
cp "$open/all/libweft_plugin_good.so" "$open/all/libcuda.so.1"
WEFT_CUDA_LIB=$open/all expect 1 "WEFT_CUDA_LIB=$open/all cannot be opened: $open/all belongs to user" weft why nccl
chmod 0755 "$open/all"
WEFT_PLUGIN_PATH=$open/mine expect 0 "usable" weft why good
WEFT_CUDA_LIB=$open/all expect 1 "$open/all/libcuda.so.1 has no function" weft why nccl
finish
