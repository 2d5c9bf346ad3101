// SPDX-License-Identifier: MIT
// A submission that tries what the sandbox is there for, and says what it could do. PLACE: a file outside that everyone
// may write; PORT: one that listens on this machine; ENDLESS: 1 if it never ends.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
int main() {
  int made = 0;
  for (int i = 0; i < 100; ++i) {
    pid_t child = fork();
    if (child == 0) { sleep(20); _exit(0); }
    made += child > 0;
  }
  void* memory = mmap(0, 1L << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const char* files[] = {"/usr/bin/cookbook-was-here", "/box/worker", "/etc/cookbook-was-here", PLACE};
  int written = 0, there = access(PLACE, F_OK) == 0, secret = access("/etc/shadow", R_OK) == 0;
  for (int i = 0; i < 4; ++i) { FILE* f = fopen(files[i], "a"); if (f) { written++; fclose(f); } }
  unlink(PLACE);
  struct sockaddr_in to; memset(&to, 0, sizeof to);
  to.sin_family = AF_INET; to.sin_port = htons(PORT); to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int connected = connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&to, sizeof to) == 0;
  printf("{\"made\": %d, \"memory\": %d, \"written\": %d, \"there\": %d, \"secret\": %d, \"connected\": %d, "
         "\"home\": %d}\n",
         made, memory != MAP_FAILED, written, there, secret, connected, getenv("HOME") != 0);
  fflush(stdout);
  if (ENDLESS) for (;;) {}
  return 0;
}
