#!/usr/bin/env bash
# One path for both toolkits: the CANN toolkit that ASCEND_HOME_PATH names, or, when that is unset, the simulator in sim/.
set -Eeuo pipefail
cd "$(dirname "$0")"

usage() {
  cat <<'TXT'
usage: ./build.sh COMMAND [--soc NAME] [--ops A,B] [--no-npu] [-- ARGS]

  demo      set up .venv, build, and run hc_pre_sinkhorn on every backend against the oracle
  demo-npu  ... and run examples/npu/*.py, unmodified torch_npu code, on the NPU or the simulated one
  test      set up .venv, build, and run the tests, then those in tests/npu with torch_npu
            ARGS go to pytest, e.g. -- -k sinkhorn, or files: -- tests/npu/test_capture.py
  build     build the op package into build/opp/vendors/custom_ops
  bench     measured and modelled speed, side by side, as ratios
            (the pictures of modelled times in docs/ops: benchmarks/plot_modelled.py)
  clean     remove .venv, build/ and dist/

  --soc   ascend910b (default), ascend910_93 or ascend950, or several joined by commas    (build)
  --ops   operator folders to build, e.g. hc_pre_sinkhorn; default: all                   (build)
  --no-npu  leave out the tests that need torch_npu                   (test)

The toolkit is the one ASCEND_HOME_PATH names; unset, it is this project's simulator, which needs a C++17 compiler only.
Environment: PYTHON (python3), CXX (the compiler of simulated kernels), CUSTOM_OPS_CACHE_DIR (where built kernels are kept).
TXT
}

step() { printf '\n== %s\n' "$*"; current_step=$*; }
current_step="starting"
trap 'printf "\nbuild.sh: failed while: %s\n" "$current_step" >&2' ERR

soc=ascend910b
ops=
npu=yes
command=${1:-}
[ $# -gt 0 ] && shift
args=()
while [ $# -gt 0 ]; do
  case $1 in
    --soc|--ops) [ $# -ge 2 ] || { echo "build.sh: $1 needs a value" >&2; exit 2; }
           [ "$1" = --soc ] && soc=$2 || ops=$2
           shift 2 ;;
    --soc=*) soc=${1#*=}; shift ;;
    --ops=*) ops=${1#*=}; shift ;;
    --no-npu) npu=; shift ;;
    --) shift; args=("$@"); break ;;
    -h|--help) usage; exit 0 ;;
    *) printf 'build.sh: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
done

# Under `custom-ops run` the variable names the simulator's own folder.
[ -z "${CUSTOM_OPS_NPU_PACKAGE:-}" ] || unset ASCEND_HOME_PATH

venv=.venv
python=$venv/bin/python

# Digest of everything the wheel is made from: an unchanged tree is not installed again.
sources_digest() {
  find python sim op_host op_kernel framework CMakeLists.txt pyproject.toml README.md LICENSE -type f \
       ! -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

setup() {  # setup [extras]: .venv with torch, the build tools and this project installed
  local extras=${1:-}
  if [ ! -x $python ]; then
    step "creating $venv"
    "${PYTHON:-python3}" -m venv $venv || {
      echo "python -m venv failed: install the venv module of your Python (Debian: apt install python3-venv)" >&2; exit 1; }
  fi
  local stamp="$venv/.installed${extras:+-$extras}" digest
  digest=$(sources_digest)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then return; fi
  step "installing PyTorch (CPU) and the build tools"
  $python -m pip install --quiet 'torch==2.13.0' 'scikit-build-core>=0.10' cmake ninja
  step "building and installing custom_ops${extras:+ with its extras $extras} (some minutes on two cores)"
  $python -m pip install --quiet --no-build-isolation ".${extras:+[$extras]}"
  echo "$digest" > "$stamp"
}

# Exported models are run in llama.cpp, which is built here without its image part.
setup_llama_cpp() {
  local package="llama-cpp-python==0.3.36"
  if [ "$(cat $venv/.installed-llama-cpp 2>/dev/null)" = "$package" ]; then return; fi
  step "building llama.cpp for the tests of exported models (some minutes on two cores)"
  CMAKE_ARGS=-DLLAVA_BUILD=OFF $python -m pip install --quiet --no-build-isolation "$package"
  echo "$package" > $venv/.installed-llama-cpp
}

# torch-npu goes into a folder beside .venv's own packages, and only NPU commands see it: where it is installed without CANN,
# a plain `import torch` fails.
npu_site=$venv/npu-site
setup_npu() {
  local packages="torch-npu==2.13.0 protobuf pyyaml decorator attrs psutil"
  if [ "$(cat $npu_site/.installed 2>/dev/null)" = "$packages" ]; then return; fi
  step "installing torch-npu into $npu_site"
  rm -rf $npu_site
  # shellcheck disable=SC2086  # one word per package
  $python -m pip install --quiet --no-deps --target $npu_site $packages
  echo "$packages" > $npu_site/.installed
}

with_npu() { PYTHONPATH="$PWD/$npu_site${PYTHONPATH:+:$PYTHONPATH}" "$@"; }

# Runs both suites, or, when ARGS name files in tests/, those that hold them.
run_tests() {
  local arg ordinary=() special=() options=()
  for arg in "${args[@]}"; do
    case ${arg#./} in
      tests/npu*) special+=("$arg") ;;
      tests/*) ordinary+=("$arg") ;;
      *) options+=("$arg") ;;
    esac
  done
  if [ ${#special[@]} -eq 0 ] || [ ${#ordinary[@]} -gt 0 ]; then
    step "running the tests"
    suite $python -m pytest -n 2 "${options[@]}" "${ordinary[@]}"
  fi
  if [ -n "$npu" ] && { [ ${#ordinary[@]} -eq 0 ] || [ ${#special[@]} -gt 0 ]; }; then
    setup_npu
    [ ${#special[@]} -gt 0 ] || special=(tests/npu)
    step "running the tests with torch_npu"
    suite with_npu $python -m pytest -p custom_ops.npu -n 2 "${options[@]}" "${special[@]}"
  fi
}

suite() {  # "no tests selected" (5) is no failure when ARGS select those of the other suite
  local status=0
  "$@" || status=$?
  if [ $status -eq 5 ] && [ ${#options[@]} -gt 0 ]; then return; fi
  return $status
}

toolkit() {
  if [ -n "${ASCEND_HOME_PATH:-}" ]; then echo "CANN at $ASCEND_HOME_PATH"; else echo "the simulator (sim/), ASCEND_HOME_PATH is unset"; fi
}

nlohmann_json=nlohmann-json==3.12.0

build() {
  echo "toolkit: $(toolkit)"
  if [ -n "${ASCEND_HOME_PATH:-}" ]; then
    local headers=()
    if [ ! -f /usr/include/nlohmann/json.hpp ]; then
      step "fetching nlohmann/json for the ONNX parser plugin"
      "${PYTHON:-python3}" -m pip install --quiet --upgrade --no-deps --target build/json $nlohmann_json
      headers=(--json build/json/nlohmann_json/include)
    fi
    step "staging a custom-op project for CANN"
    "${PYTHON:-python3}" scripts/cann_project.py --soc "$soc" ${ops:+--ops "$ops"} "${headers[@]}" build/cann
    step "building it with the CANN toolkit"
    (cd build/cann && bash build.sh)
    step "installing the package into build/opp"
    local installer
    installer=$(compgen -G 'build/cann/build_out/custom_opp_*.run') || {
      echo "the toolkit left no build/cann/build_out/custom_opp_*.run: see its output above" >&2; exit 1; }
    bash "$installer" --install-path="$PWD/build/opp" --quiet
  else
    setup
    $python -m pip install --quiet $nlohmann_json  # for the ONNX parser plugin
    step "building the op package for the simulated $soc"
    rm -rf build/opp/vendors/custom_ops
    local selection=()
    for op in ${ops//,/ }; do selection+=(--op "$op"); done
    $venv/bin/custom-ops sim build . --soc "$soc" "${selection[@]}" --output build/opp/vendors/custom_ops
  fi
  echo "op package: build/opp/vendors/custom_ops"
}

case $command in
  demo)
    setup
    step "running examples/hc_pre_sinkhorn.py (its first run compiles the kernels of both architectures)"
    $python examples/hc_pre_sinkhorn.py "${args[@]}" ;;
  test)
    echo "toolkit: $(toolkit)"
    setup test,onboard,gguf,mnn,onnx
    setup_llama_cpp
    run_tests ;;
  demo-npu)
    setup
    setup_npu
    for example in examples/npu/*.py; do
      step "running $example (the first time its kernels are compiled)"
      with_npu $venv/bin/custom-ops run --soc "$soc" --report "$example" "${args[@]}"
    done ;;
  build) build ;;
  bench)
    setup
    step "running the benchmarks"
    $python benchmarks/run.py "${args[@]}" ;;
  clean) rm -rf $venv build dist ;;
  -h|--help|help) usage ;;
  '') usage >&2; exit 2 ;;
  *) printf 'build.sh: unknown command %s\n\n' "$command" >&2; usage >&2; exit 2 ;;
esac
