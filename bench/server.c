// The bench's API: answers Chat Completions requests as fast as one core can, one connection at a time.
//
//   server [-p] [-m MARK]... [FOLDER]
//
// POST /turns/N/... asks for N calls of Read, one a reply, then gives a text; /shell/N/... for calls of Bash,
// /large/N/... for calls of Read that name large.txt, /mixed/N/... for Read, Edit and Bash in turn. How many results
// the request holds decides, so no state is kept. With a folder as its argument each body is kept there.
//
// With -p each connection is served by a process of its own. A request that holds MARK results is told on standard
// output with its length, and answered when a line comes on standard input.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char *buffer;
static size_t capacity, filled;

static int marks[64], mark_count;

static int fill(int client) {
  if (filled + 1 >= capacity) buffer = realloc(buffer, capacity = capacity ? capacity * 2 : 1 << 16);
  ssize_t count = read(client, buffer + filled, capacity - filled - 1);
  if (count <= 0) return 0;
  filled += count;
  buffer[filled] = 0;
  return 1;
}

static int occurrences(const char *text, const char *word) {
  int count = 0;
  while ((text = strstr(text, word))) count++, text += strlen(word);
  return count;
}

static void hold_at_mark(int results, size_t length) {
  char line[64];
  for (int index = 0; index < mark_count; index++)
    if (marks[index] == results) {
      printf("%d %zu\n", results, length);
      fflush(stdout);
      if (!fgets(line, sizeof line, stdin)) exit(1);
    }
}

// The arguments of the call that follows so many results, as JSON inside a JSON string.
static const char *call(const char *kind, int results, char *arguments, size_t size) {
  if (!strncmp(kind, "/shell/", 7)) return snprintf(arguments, size, "{\\\"command\\\": \\\"true\\\"}"), "Bash";
  if (!strncmp(kind, "/large/", 7)) return snprintf(arguments, size, "{\\\"file_path\\\": \\\"large.txt\\\"}"), "Read";
  if (!strncmp(kind, "/turns/", 7)) return snprintf(arguments, size, "{\\\"file_path\\\": \\\"apple.py\\\"}"), "Read";
  int round = results / 3;
  switch (results % 3) {
    case 0: return snprintf(arguments, size, "{\\\"file_path\\\": \\\"count.txt\\\"}"), "Read";
    case 1: return snprintf(arguments, size, "{\\\"file_path\\\": \\\"count.txt\\\", \\\"old_string\\\": \\\"count %d\\\", "
        "\\\"new_string\\\": \\\"count %d\\\"}", round, round + 1), "Edit";
    default: return snprintf(arguments, size, "{\\\"command\\\": \\\". ./step\\\"}"), "Bash";
  }
}

static void serve(int client, const char *folder) {
  filled = 0;
  for (;;) {
    char *head;
    while (!filled || !(head = strstr(buffer, "\r\n\r\n")))
      if (!fill(client)) return;
    size_t start = head + 4 - buffer;
    char *field = strcasestr(buffer, "content-length:");
    size_t length = field && field < head ? strtoul(field + 15, 0, 10) : 0;
    while (filled < start + length)
      if (!fill(client)) return;
    char *kind = strchr(buffer, ' ') + 1;
    int turns = atoi(kind + 7);
    char saved = buffer[start + length];
    buffer[start + length] = 0;
    int results = occurrences(buffer + start, "\"role\":\"tool\"");
    buffer[start + length] = saved;
    if (folder) {
      char name[4096];
      snprintf(name, sizeof name, "%s/%05d", folder, results + 1);
      FILE *file = fopen(name, "w");
      if (!file || fwrite(buffer + start, 1, length, file) != length || fclose(file)) exit(1);
    }
    hold_at_mark(results, length);
    char body[1024], arguments[512];
    const char *tool = call(kind, results, arguments, sizeof arguments);
    int size = results < turns
      ? snprintf(body, sizeof body,
          "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"index\":0,"
          "\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":\"%s\",\"arguments\":\"%s\"}}]},"
          "\"finish_reason\":null}]}\n\n"
          "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
          results, tool, arguments)
      : snprintf(body, sizeof body,
          "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"done\"},\"finish_reason\":null}]}\n\n"
          "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    char answer[2048];
    size = snprintf(answer, sizeof answer,
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%s", size, body);
    if (write(client, answer, size) != size) return;
    memmove(buffer, buffer + start + length, filled - start - length);
    filled -= start + length;
    buffer[filled] = 0;
  }
}

int main(int count, char **arguments) {
  int is_parallel = 0, option;
  while ((option = getopt(count, arguments, "pm:")) != -1) {
    if (option == 'p') is_parallel = 1;
    else if (option == 'm' && mark_count < 64) marks[mark_count++] = atoi(optarg);
    else return 2;
  }
  signal(SIGCHLD, SIG_IGN);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (void *)&address, size) || listen(listener, 1024) || getsockname(listener, (void *)&address, &size)) return 1;
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    int client = accept(listener, 0, 0);
    if (client < 0) return 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int is_child = is_parallel && fork() == 0;
    if (!is_parallel || is_child) serve(client, optind < count ? arguments[optind] : 0);
    close(client);
    if (is_child) return 0;
  }
}
