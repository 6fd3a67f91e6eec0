// The control protocol of savegate-fs: JSON lines over a Unix stream socket, one reply a request.
// clang-format off
//
//   → {"cmd":"status"}                              ← {"ok":true,"mount":"…","held":0,…,"files":
//        [{"path":"…","passthrough":1,"daemon":2,"why":"…"}]}: open files by how many handles,
//        "missed" where a rule does not see operations of some of them
//   → {"cmd":"arm","plan":"<toml>"}                 ← {"ok":true} | {"ok":false,"error":"…"}
//        files are open that would not see a rule of it: refused with their names, unless the request
//        says "defer":true, which arms it for later opens               ← {"ok":true,"deferred":["…"]}
//   → {"cmd":"disarm"}                              ← {"ok":true}
//   → {"cmd":"release","rule":"name"}               ← {"ok":true,"released":3}     (no rule: all)
//   → {"cmd":"statistics"}                          ← {"ok":true,"operations":{"write":17,…},
//                                                      "rules":[{"name","required","candidates","hits"}…]}
//   → {"cmd":"fired","from":0}                      ← {"ok":true,"records":[…],"next":5,"over":false}
//   → {"cmd":"fired","from":5,"wait":true}          ← the same, once there is one or the mount ends
//   → {"cmd":"mark","rank":1,"kind":"enter","name":"save 2"}      ← {"ok":true}
//   → {"cmd":"flush"}                               ← {"ok":true}   trace and fired records are on file
//   → {"cmd":"stop"}                                ← {"ok":true}   then unmounts and ends
//
// `mark` is what a rank sends (SAVEGATE_CONTROL names the socket): kind `enter` and `leave` open
// and close a span (save, load), `point` names a point in it, `collective_enter` and `collective_exit`
// carry "name" = "<communicator>#<number> <kind>". It goes through the injector as operation `phase`
// with the mark's name as path2 and its kind recorded in the trace's path, and is answered when the
// decision is done: a kill, a delay or a hold at a protocol point is a rule like any other. The
// caller is identified by the socket's peer credentials.
//
// A reply to `fired` carries at most 10,000 records: ask again from `next` until none comes. `over`
// says that the mount ends and no rule will fire any more.
// clang-format on
#pragma once

#include <string>

#include "faults/status.h"

namespace savegate::fusefs {

// A blocking client of one connection. Not thread-safe.
class ControlClient {
 public:
  static Result<ControlClient> connect(const std::string& socket_path);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&& other) noexcept;
  ~ControlClient();
  // One JSON request line in, the reply line out (without '\n'). A reply of {"ok":false} is an
  // error that quotes it.
  Result<std::string> call(const std::string& request_json);

 private:
  explicit ControlClient(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace savegate::fusefs
