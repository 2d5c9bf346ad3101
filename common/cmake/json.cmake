# SPDX-License-Identifier: MIT
# cookbook_json(<variable> <item>...): the items as a JSON list.
function(cookbook_json variable)
  list(JOIN ARGN "\", \"" text)
  set(${variable} "[\"${text}\"]" PARENT_SCOPE)
endfunction()
