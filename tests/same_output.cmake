# SPDX-License-Identifier: MIT
# cmake -D PROGRAM=... -D COMMITTED=... -D WRITTEN=... -P same_output.cmake
# Fails unless what PROGRAM --json writes is the committed file.
execute_process(COMMAND ${PROGRAM} --json ${WRITTEN} COMMAND_ERROR_IS_FATAL ANY)
file(READ ${WRITTEN} written)
file(READ ${COMMITTED} committed)
if(NOT written STREQUAL committed)
  message(FATAL_ERROR "${COMMITTED} is not what ${PROGRAM} --json writes")
endif()
