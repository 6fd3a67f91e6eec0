# How every part of savegate is declared.
#
#   savegate_library(faults SOURCES plan.cc … DEPENDS fmt::fmt …)
#   savegate_program(savegate-fs SOURCES main.cc DEPENDS fusefs …)
#
# A library finds its tests (*_test.cc) and benchmarks (*_bench.cc) beside its sources and makes one
# program of each kind: <name>_test, registered with CTest test by test under the label "unit", and
# <name>_bench. A test that mounts, forks ranks or runs other programs is named *_scenario_test.cc
# and goes into <name>_scenario_test, label "scenario". Programs land in build/bin/.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Programs look for libraries in ../lib first, those that their libraries need included: what is
# copied together runs together, wherever that is.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
add_link_options(-Wl,--disable-new-dtags)
set(SAVEGATE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")
option(SAVEGATE_UNITY_TESTS "Compile a dozen tests at once" OFF)

find_program(SAVEGATE_CCACHE ccache)
if(SAVEGATE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SAVEGATE_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Gloo REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(Boost REQUIRED COMPONENTS fiber context)
pkg_check_modules(fuse3 REQUIRED IMPORTED_TARGET fuse3>=3.14)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

add_library(savegate_flags INTERFACE)
target_include_directories(savegate_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(savegate_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false alarm on "literal" + std::string (GCC bug 105651).
  target_compile_options(savegate_flags INTERFACE -Wno-restrict)
endif()
# Of sources that are compiled together, this tells what is not so where each is by itself.
set(savegate_unity_options $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
if(CMAKE_UNITY_BUILD)
  target_compile_options(savegate_flags INTERFACE ${savegate_unity_options})
endif()
target_compile_definitions(savegate_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
if(SAVEGATE_SANITIZE)
  target_compile_options(savegate_flags INTERFACE -fsanitize=${SAVEGATE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A false alarm of the optimiser on std::regex.
    target_compile_options(savegate_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(savegate_flags INTERFACE -fsanitize=${SAVEGATE_SANITIZE})
endif()

option(SAVEGATE_FUZZ "Build the fuzzers (clang)" OFF)
if(SAVEGATE_FUZZ)
  target_compile_options(savegate_flags INTERFACE -fsanitize=fuzzer-no-link -Wno-unknown-warning-option)
endif()

# All unit test programs: what the sanitizer builds need. All programs that users run.
add_custom_target(unit_tests)
add_custom_target(programs)
add_custom_target(fuzzers)

function(savegate_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;TEST_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC savegate_flags ${ARG_DEPENDS} Threads::Threads)

  file(GLOB scenario_tests CONFIGURE_DEPENDS *_scenario_test.cc)
  file(GLOB unit_tests CONFIGURE_DEPENDS *_test.cc)
  file(GLOB benches CONFIGURE_DEPENDS *_bench.cc)
  if(scenario_tests)
    list(REMOVE_ITEM unit_tests ${scenario_tests})
  endif()
  savegate_test_program(${name}_test unit "${unit_tests}" ${name} ${ARG_TEST_DEPENDS})
  savegate_test_program(${name}_scenario_test scenario "${scenario_tests}" ${name} ${ARG_TEST_DEPENDS})
  if(benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE ${name} ${ARG_TEST_DEPENDS} benchmark::benchmark_main)
  endif()
endfunction()

function(savegate_test_program program label sources)
  if(NOT sources)
    return()
  endif()
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE ${ARGN} GTest::gmock GTest::gtest_main)
  # What is tested is the library, optimised as it is released; the tests themselves build faster.
  target_compile_options(${program} PRIVATE -O0)
  if(SAVEGATE_UNITY_TESTS)
    # Headers take most of the time.
    set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    target_compile_options(${program} PRIVATE ${savegate_unity_options})
  endif()
  target_compile_definitions(${program} PRIVATE
    SAVEGATE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" SAVEGATE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(label STREQUAL "unit")
    add_dependencies(unit_tests ${program})
  elseif(SAVEGATE_SANITIZE)
    return()   # scenario tests run other programs; the sanitizer builds hold the unit tests alone
  endif()
  if(SAVEGATE_SANITIZE)
    # One process for a whole program: with a sanitizer in it, its start costs more than most tests.
    add_test(NAME ${program}
             COMMAND ${program} --gtest_brief=1 --gtest_output=xml:${CMAKE_BINARY_DIR}/junit-${program}.xml)
    set_tests_properties(${program} PROPERTIES LABELS ${label} TIMEOUT 1200)
    return()
  endif()
  include(GoogleTest)
  gtest_discover_tests(${program} PROPERTIES LABELS ${label} TIMEOUT 1200 DISCOVERY_TIMEOUT 60)
endfunction()

# A libFuzzer program; only built where SAVEGATE_FUZZ says that the compiler has it.
function(savegate_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(SAVEGATE_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE savegate_flags ${ARG_DEPENDS} -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  endif()
endfunction()

function(savegate_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE savegate_flags ${ARG_DEPENDS})
  add_dependencies(programs ${name})
endfunction()
