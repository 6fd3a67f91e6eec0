// savegate-fs-caller: a rank for the tests of savegate-fs.
//
//   savegate-fs-caller write PATH BYTES [main|thread|child|child-beside-idle|and-wait]
//   savegate-fs-caller tell SOCKET JSON
//   savegate-fs-caller exec PATH [child]
//
// The second sends a command to a mount's control socket and prints the reply. The third becomes
// /bin/true, itself or in a child, while it has the file open with O_CLOEXEC. The first writes
// BYTES in one write(2) from its main thread, another thread or a child process (which may have an
// idle brother), and ends or waits. Exit status: 0 all written, 100 written short, 101 the child
// ended by a signal, else the errno.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "fusefs/control.h"

namespace {

int write_file(const char* path, const std::string& bytes) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  const ssize_t put = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  ::close(fd);
  if (put < 0) return error;
  return put == static_cast<ssize_t>(bytes.size()) ? 0 : 100;
}

int write_in_child(const char* path, const std::string& bytes) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(write_file(path, bytes));
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

int tell(const char* socket, const char* json) {
  auto client = savegate::fusefs::ControlClient::connect(socket);
  if (!client) return 1;
  auto reply = client->call(json);
  std::puts(reply ? reply->c_str() : reply.error().to_string().c_str());
  return reply ? 0 : 1;
}

int exec_with_open_file(const char* path, bool in_child) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, "x", 1) != 1) return errno;
  const pid_t child = in_child ? ::fork() : 0;
  if (child == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && std::string(argv[1]) == "exec") return exec_with_open_file(argv[2], argc > 3);
  if (argc == 4 && std::string(argv[1]) == "tell") return tell(argv[2], argv[3]);
  if (argc < 4 || std::string(argv[1]) != "write") return 2;
  const std::string bytes(std::strtoull(argv[3], nullptr, 10), 'x');
  const std::string from = argc > 4 ? argv[4] : "main";
  if (from == "child") return write_in_child(argv[2], bytes);
  if (from == "child-beside-idle") {
    if (::fork() == 0) return ::pause();
    return write_in_child(argv[2], bytes);
  }
  if (from == "and-wait") {
    const int result = write_file(argv[2], bytes);
    return result == 0 ? ::pause() : result;
  }
  if (from == "main") return write_file(argv[2], bytes);
  int result = 0;
  std::thread([&] { result = write_file(argv[2], bytes); }).join();
  return result;
}
