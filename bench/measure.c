// Runs a command some times and prints of each run: wall time and CPU time in microseconds, peak memory in KiB.
//
//   measure COUNT COMMAND...
//
// A small program of its own: what a big parent holds would be counted as its child's peak memory.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

int main(int count, char **arguments) {
  if (count < 3) return 2;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  for (int runs = atoi(arguments[1]); runs > 0; runs--) {
    struct timespec begin, end;
    struct rusage usage;
    pid_t child;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (posix_spawnp(&child, arguments[2], &actions, 0, arguments + 2, environ)) return 1;
    if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status)) {
      fprintf(stderr, "measure: %s failed\n", arguments[2]);
      return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld %ld %ld\n", (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000,
      (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec,
      usage.ru_maxrss);
  }
  return 0;
}
