# flowsolver_core for other C++ code, as flowsolver::flowsolver: by add_subdirectory of this folder
# or, once installed, by find_package(flowsolver). Both include <flowsolver/flowsolver.hpp>. Needs a
# C++20 compiler and nothing else.
include(GNUInstallDirs)
find_package(Threads REQUIRED)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(flowsolver::flowsolver ALIAS flowsolver_core)
set_target_properties(flowsolver_core PROPERTIES
  EXPORT_NAME flowsolver OUTPUT_NAME flowsolver POSITION_INDEPENDENT_CODE ON)
target_compile_features(flowsolver_core PUBLIC cxx_std_20)
target_link_libraries(flowsolver_core PUBLIC Threads::Threads)
if(TARGET agora_flags)
  target_link_libraries(flowsolver_core PRIVATE $<BUILD_INTERFACE:agora_flags>)
endif()

# Users include <flowsolver/...>; in the source tree there is no folder of that name.
file(CONFIGURE OUTPUT include/flowsolver/flowsolver.hpp @ONLY
     CONTENT "#pragma once\n#include \"@CMAKE_CURRENT_SOURCE_DIR@/flowsolver.hpp\"\n")
target_include_directories(flowsolver_core PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

if(NOT DEFINED SKBUILD_STATE)  # a Python package holds no C++ library
  set(FLOWSOLVER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/flowsolver)
  install(TARGETS flowsolver_core EXPORT flowsolver COMPONENT flowsolver)
  # The headers in folders are internal.
  file(GLOB FLOWSOLVER_HEADERS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)
  install(FILES ${FLOWSOLVER_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/flowsolver
          COMPONENT flowsolver)
  install(EXPORT flowsolver NAMESPACE flowsolver:: FILE flowsolver-targets.cmake
          DESTINATION ${FLOWSOLVER_PACKAGE_DIR} COMPONENT flowsolver)
  string(CONCAT config "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
         "include(\${CMAKE_CURRENT_LIST_DIR}/flowsolver-targets.cmake)\n")
  file(CONFIGURE OUTPUT flowsolver-config.cmake @ONLY CONTENT "${config}")
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(flowsolver-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/flowsolver-config.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/flowsolver-config-version.cmake
          DESTINATION ${FLOWSOLVER_PACKAGE_DIR} COMPONENT flowsolver)
endif()

# Tests: linking within this build, and from a separate project after installation.
if(COMMAND agora_cpp_test AND NOT DEFINED SKBUILD_STATE)
  agora_cpp_test(flowsolver_linking flowsolver_linking.cpp flowsolver::flowsolver)
  set(prefix ${CMAKE_CURRENT_BINARY_DIR}/installed)
  set(link_options "$<TARGET_PROPERTY:agora_flags,INTERFACE_LINK_OPTIONS>")
  add_test(NAME flowsolver_install
           COMMAND ${CMAKE_COMMAND} --install ${CMAKE_CURRENT_BINARY_DIR} --prefix ${prefix}
                   --component flowsolver)
  add_test(NAME flowsolver_package
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test
                   ${CMAKE_SOURCE_DIR}/tests/cpp/flowsolver_package
                   ${CMAKE_CURRENT_BINARY_DIR}/package
                   --build-generator ${CMAKE_GENERATOR} --build-makeprogram ${CMAKE_MAKE_PROGRAM}
                   --build-options -DCMAKE_PREFIX_PATH=${prefix}
                   -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                   "-DCMAKE_CXX_FLAGS=$<JOIN:${link_options}, >"
                   --test-command flowsolver_linking)
  set_tests_properties(flowsolver_install PROPERTIES FIXTURES_SETUP flowsolver_installed)
  set_tests_properties(flowsolver_package PROPERTIES FIXTURES_REQUIRED flowsolver_installed)
endif()
