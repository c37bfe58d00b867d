// The least that a client can do: posts files one after another over one connection and reads the replies.
//
//   client PORT PATH FILE...
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(server, (void *)&address, sizeof address)) return 1;
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  static char answer[1 << 16];
  for (int index = 3; index < count; index++) {
    int file = open(arguments[index], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) return 1;
    char *request = malloc(status.st_size + 4096);
    int head = sprintf(request, "POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %ld\r\n\r\n",
      arguments[2], (long)status.st_size);
    if (read(file, request + head, status.st_size) != status.st_size) return 1;
    if (write(server, request, head + status.st_size) != head + status.st_size) return 1;
    close(file);
    free(request);
    size_t filled = 0;
    for (;;) {
      ssize_t read_now = read(server, answer + filled, sizeof answer - filled - 1);
      if (read_now <= 0) return 1;
      answer[filled += read_now] = 0;
      char *end = strstr(answer, "\r\n\r\n"), *field = strcasestr(answer, "content-length:");
      if (end && field && filled >= (end + 4 - answer) + strtoul(field + 15, 0, 10)) break;
    }
  }
  return 0;
}
