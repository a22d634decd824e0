# What the packages with native code share: language, warnings, sanitizers, precompiled headers, Python's own facts.
# Beside cmake_build.py, which drives CMake, this file is installed with the package.

set(TAEDA_PYTHON "python3" CACHE STRING "Interpreter the extension is built for")
set(TAEDA_SANITIZE "" CACHE STRING "address: with address and undefined-behaviour sanitizers; thread: with the thread sanitizer")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(TAEDA_WARNINGS -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND TAEDA_WARNINGS -Werror -Wno-unused-parameter -Wno-missing-field-initializers -Wno-psabi -Wno-array-bounds
                             -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-cast-function-type)
else()  # no errors there: what is warned of changes with each release
  list(APPEND TAEDA_WARNINGS -Wno-unused-parameter -Wno-missing-field-initializers -Wno-unknown-pragmas -Wno-ignored-attributes
                             -Wno-bitwise-instead-of-logical -Wno-bitwise-conditional-parentheses)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Without this it takes no object from the cache that was made with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

if(TAEDA_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")  # instrumented code takes long to compile
endif()
if(TAEDA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -Wno-tsan -fno-omit-frame-pointer -g1)  # -Wno-tsan: a fence it does not model
  add_link_options(-fsanitize=thread)
elseif(TAEDA_SANITIZE)
  # Each access calls the runtime instead of checking in place, and what the address sanitizer sees by itself (null, objects'
  # ends) is not looked at twice: a third of the time to compile.
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -g1
    -fno-sanitize=vptr,null,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute
    --param=asan-instrumentation-with-call-threshold=0)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(TAEDA_CHECKED _GLIBCXX_ASSERTIONS)  # indices of our containers and the library's
endif()
# What nothing calls goes.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)
# Tables to unwind by only where exceptions are; GCC goes by whole files and needs -fno-exceptions besides.
add_compile_options(-fno-asynchronous-unwind-tables)

execute_process(COMMAND ${TAEDA_PYTHON} -c "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'), sep=';', end='')"
                OUTPUT_VARIABLE PYTHON_FACTS COMMAND_ERROR_IS_FATAL ANY)
list(GET PYTHON_FACTS 0 PYTHON_INCLUDE)
list(GET PYTHON_FACTS 1 PYTHON_SUFFIX)

# The standard library is half of what the compiler reads. Headers of ours stay out: one that changes rebuilds the files
# that include it, and no more.
function(taeda_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <cmath> <complex> <cstdint> <cstring>
    <functional> <initializer_list> <limits> <map> <memory> <mutex> <optional> <span> <stdexcept> <string> <string_view>
    <tuple> <type_traits> <utility> <variant> <vector>)
endfunction()

# A module that Python loads: `_C` of a package.
function(taeda_python_module target)
  add_library(${target} MODULE ${ARGN})
  target_include_directories(${target} SYSTEM PRIVATE ${PYTHON_INCLUDE})
  target_compile_options(${target} PRIVATE ${TAEDA_WARNINGS} -fno-plt)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "${PYTHON_SUFFIX}")
  taeda_precompile(${target})
  install(TARGETS ${target} LIBRARY DESTINATION .)
endfunction()
