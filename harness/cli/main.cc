// savegate: the command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "harness/cli/arguments.h"
#include "harness/cli/commands.h"
#include "harness/cli/validators.h"

namespace savegate::cli {
namespace {

// Neither an unset variable after an option nor one after `--` is taken for a default.
Result<void> check_words(const CLI::App& subcommand, SaidOfSubject said) {
  for (const CLI::Option* option : subcommand.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        return fail(invalid(option->get_name() +
                            " is empty (an unset variable?): say a value, or leave it out"));
  const CLI::Option* subject = subcommand.get_option_no_throw("--subject");
  said.subcommand = subcommand.get_name();
  said.takes_subject = subject != nullptr;
  said.subject_said = said.takes_subject && subject->count() > 0;
  return check_subject_words(said);
}

int main_checked(int argc, char** argv) {
  Options options;
  const auto command = split_command(argc, argv);
  options.command = command.value_or(std::vector<std::string>{});

  CLI::App app(
      "savegate runs a real save path on real ranks over a file system that lies on command,\n"
      "kills it anywhere, starts it again, and proves from evidence what it did.");
  app.name("savegate");
  app.set_version_flag("--version", SAVEGATE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 all passed, 1 a scenario failed, 2 wrong usage or configuration,\n"
      "3 the environment cannot, 4 nothing was proven, 5 savegate's own error, 130 interrupted.");
  std::function<int()> chosen;

  RunWords running;
  CLI::App* run = app.add_subcommand("run", "run suites or scenarios against a save path");
  run->add_option("names", running.names,
                  "suites, scenarios, *.toml files, or a stored scenario.json")
      ->required();
  run->add_option(
      "--budget", running.budget,
      "time for all of it, such as 30m: what failed last comes first, what does not fit "
      "is not run, and random plans fill the rest");
  run->add_option("--quarantine", running.quarantine,
                  "failures that do not fail the run until a date; default: "
                  "savegate-quarantine.toml, where that file is there");
  add_options(*run, options);
  run->footer(
      "Examples:\n"
      "  savegate run smoke\n"
      "  savegate run kill-sweep --world 4\n"
      "  savegate run nightly --budget 30m --quarantine known.toml --junit savegate.xml\n"
      "  savegate run enospc/marker --seed 7 --store /tmp/store\n"
      "  savegate run smoke -- ./my-save-path --some flag");
  run->callback([&] { chosen = [&] { return run_command(running, options); }; });

  CLI::App* check = app.add_subcommand(
      "check-subject", "run one clean life of a program and say what its events are worth");
  add_options(*check, options);
  check->footer(
      "Exit status: 0 it conforms to docs/subject-contract.md, 1 it does not, 4 it wrote no "
      "event.\n"
      "Examples:\n"
      "  savegate check-subject --world 1 -- python3 train.py\n"
      "  savegate check-subject --subject my-save-path.toml");
  check->callback([&] { chosen = [&] { return check_subject_command(options); }; });

  LoopWords looping;
  CLI::App* loop = app.add_subcommand(
      "loop", "repeat a scenario until it fails, or with one factor changed at a time");
  std::string repeated;
  loop->add_option("scenario", repeated, "a scenario, or a stored scenario.json")->required();
  CLI::Option* rounds = loop->add_option("--rounds", looping.rounds,
                                         "how often; default: as --failure-probability says")
                            ->check(whole_number(1, 1'000'000));
  loop->add_option("--confidence", looping.confidence, "of what is concluded")
      ->check(real_number(0.5, 0.999999))
      ->capture_default_str();
  loop->add_option("--failure-probability", looping.failure_probability,
                   "of a save; as many rounds are run as exclude it, if all are clean")
      ->check(real_number(0.000001, 0.999999))
      ->excludes(rounds)
      ->capture_default_str();
  loop->add_option("--vary", looping.vary,
                   "NAME=BASELINE,OTHER: `backing`, `world`, a variable of the subject, or "
                   "env.NAME; all rounds "
                   "are run, and what changes the failure rate is named")
      ->allow_extra_args(false);
  add_options(*loop, options);
  loop->footer(
      "Each round has a seed of its own, counted up from --seed or the scenario's.\n"
      "Examples:\n"
      "  savegate loop smoke/clean --failure-probability 0.01\n"
      "  savegate loop smoke/clean --rounds 40 --vary backing=/local,/nfs --vary state=8MiB,1GiB");
  loop->callback([&] { chosen = [&] { return loop_command(repeated, looping, options); }; });

  std::string scene;
  Options of_scene = options;
  of_scene.subject.clear();  // its own
  CLI::App* replay =
      app.add_subcommand("replay", "repeat one scenario exactly, from its folder of a store alone");
  replay->add_option("scene", scene, "a scenario's folder in a run, or a copy of it")->required();
  add_scene_options(*replay, of_scene);
  replay->footer(
      "Exit status: 0 it passes, 1 it fails in the same way as in the scene, 4 in another way.\n"
      "Examples:\n"
      "  savegate replay store/latest/late-eio-at-fsync\n"
      "  savegate replay /tmp/scene --subject my-save-path.toml");
  replay->callback([&] { chosen = [&] { return replay_command(scene, of_scene); }; });

  CLI::App* reduce = app.add_subcommand(
      "reduce", "find the fewest rules, the smallest world and state that fail in the same way");
  std::string failing;
  reduce->add_option("scenario", failing, "a scenario, or a scenario's folder in a run")
      ->required();
  add_options(*reduce, options);
  reduce->footer(
      "Writes reduced.toml into the run's folder of the store.\n"
      "Exit status: 0 it passes, 1 it fails and was reduced, 4 it proves nothing, or fails in "
      "another\nway than in its scene.\n"
      "Examples:\n"
      "  savegate reduce store/latest/late-eio-at-fsync\n"
      "  savegate reduce my-suite.toml --subject my-save-path.toml");
  reduce->callback([&] {
    const bool of_its_own = reduce->count("--subject") == 0 && options.command.empty();
    chosen = [&, of_its_own] { return reduce_command(failing, of_its_own, options); };
  });

  SignoffWords signing;
  std::string checked;
  ComparedWords compared;
  CLI::App* signoff = app.add_subcommand(
      "signoff", "the acceptance of a save path: many saves, two kills and resumes, a sheet");
  CLI::Option* check_file = signoff->add_option(
      "--check", checked, "signoff.json whose evidence is verified; nothing runs");
  signoff
      ->add_option("--compare", compared.file,
                   "signoff.json that what is to run now is compared with; nothing runs")
      ->excludes(check_file);
  CLI::Option* saves =
      signoff->add_option("--saves", signing.saves, "consecutive ones; default: as below")
          ->check(whole_number(1, 1'000'000));
  signoff->add_option("--confidence", signing.confidence, "of what is concluded")
      ->check(real_number(0.5, 0.999999))
      ->capture_default_str();
  signoff
      ->add_option("--failure-probability", signing.failure_probability,
                   "of a save; as many saves are made as exclude it")
      ->check(real_number(0.000001, 0.999999))
      ->excludes(saves)
      ->capture_default_str();
  add_options(*signoff, options);
  signoff->footer(
      "Writes signoff.html and signoff.json into the run's folder of the store.\n"
      "Exit status of --check and --compare: 0 as signed, 1 something differs and is named.\n"
      "Examples:\n"
      "  savegate signoff --subject my-save-path.toml --world 8 --backing /checkpoints\n"
      "  savegate signoff --check store/latest/signoff.json\n"
      "  savegate signoff --compare store/latest/signoff.json --world 16");
  signoff->callback([&] {
    compared.subject = signoff->count("--subject") > 0;
    compared.device = signoff->count("--device") > 0;
    chosen = [&] {
      if (!checked.empty()) return signoff_check_command(checked);
      if (!compared.file.empty()) return signoff_compare_command(compared, options);
      return signoff_command(signing, options);
    };
  });

  std::string directory;
  CLI::App* judge =
      app.add_subcommand("judge", "judge a stored run again, from its evidence alone");
  judge->add_option("run", directory, "a run in the store, or one scenario's folder in it")
      ->required();
  judge->footer("Example:\n  savegate judge store/latest");
  judge->callback([&] { chosen = [&] { return judge_command(directory); }; });

  CLI::App* report =
      app.add_subcommand("report", "write report.html of a stored run again, from the store alone");
  report->add_option("run", directory, "a run in the store")->required();
  report->footer("Example:\n  savegate report store/latest");
  report->callback([&] { chosen = [&] { return report_command(directory); }; });

  std::string what = "suites";
  CLI::App* list = app.add_subcommand(
      "list", "show suites, scenarios, subjects, requirements, negative controls or presets");
  list->add_option("what", what)
      ->check(
          CLI::IsMember({"suites", "scenarios", "subjects", "requirements", "controls", "presets"}))
      ->capture_default_str();
  bool markdown = false;
  list->add_flag("--markdown", markdown, "requirements: as the table of docs/requirements.md");
  list->callback([&] { chosen = [&] { return list_command(what, markdown); }; });

  MountWords mounting;
  CLI::App* mount = app.add_subcommand("mount", "mount the faulty file system for use by hand");
  mount->add_option("backing", mounting.backing, "folder that holds the files")->required();
  mount->add_option("mountpoint", mounting.mount_point, "folder to mount on")->required();
  CLI::Option* plan =
      mount->add_option("--plan", mounting.plan, "fault plan (TOML) to arm at once");
  mount
      ->add_option("--preset", mounting.preset,
                   "fault plan by name, with its values: full-disk:limit=64MiB")
      ->excludes(plan);
  mount->add_option("--control", mounting.control,
                    "control socket; default: one that `savegate ctl` finds");
  mount
      ->add_option("--hold-limit", mounting.hold_limit,
                   "seconds for which an operation may be held; then the mount is aborted")
      ->check(real_number(0.001, 1e9));
  mount->add_flag("--background", mounting.background, "return once it is mounted");
  mount->footer(
      "Stays in the foreground, where Ctrl-C unmounts, unless --background is given.\n"
      "Examples:\n"
      "  savegate mount /data/checkpoints /mnt/faulty --plan full-disk.toml\n"
      "  savegate mount /data/checkpoints /mnt/faulty --preset nfs");
  mount->callback([&] { chosen = [&] { return mount_command(mounting); }; });

  std::string target;
  CtlRequest request;
  CLI::App* ctl = app.add_subcommand("ctl", "talk to a mounted faulty file system");
  ctl->add_option("mount", target, "mount point or control socket")->required();
  ctl->add_option("words", request.words,
                  "status | statistics | arm PLAN.toml | disarm | release [RULE] | fired | "
                  "mark RANK KIND NAME | stop")
      ->required();
  ctl->add_flag("--defer", request.defer,
                "arm: rules that files which are open already would not see act on later opens");
  ctl->add_flag("--follow", request.follow,
                "fired: print records as rules fire, until the mount ends");
  ctl->footer(
      "Examples:\n"
      "  savegate ctl /mnt/faulty arm full-disk.toml\n"
      "  savegate ctl /mnt/faulty fired --follow");
  ctl->callback([&] { chosen = [&] { return ctl_command(target, request); }; });

  CLI::App* doctor =
      app.add_subcommand("doctor", "say for each thing savegate needs whether it is there");
  doctor->add_option("--store", options.store, "folder of all runs")->capture_default_str();
  doctor->callback([&] { chosen = [&] { return doctor_command(options.store); }; });

  EstimateWords estimating;
  CLI::App* estimate = app.add_subcommand(
      "estimate", "say from a checkpoint's headers whether the host has room for its save");
  estimate->add_option("directory", estimating.directory, "one checkpoint")->required();
  estimate->add_option("--limit", estimating.limit,
                       "memory of the job; default: this cgroup's limit, or the node's memory");
  estimate
      ->add_option("--threshold", estimating.threshold, "share of it beyond which a guard kills")
      ->check(real_number(0.01, 1.0))
      ->capture_default_str();
  estimate->add_option("--resident", estimating.resident,
                       "what the job holds between saves; default: the state");
  estimate->add_option("--staging", estimating.staging,
                       "what a save copies into; default: a snapshot of the state");
  estimate->add_option("--sleeping", estimating.sleeping, "copies that sleep on the host");
  estimate->add_option("--others", estimating.others,
                       "of other processes; default: what is in use on this node now");
  estimate->add_flag("--json", estimating.json, "print JSON");
  estimate->footer(
      "Exit status: 0 it fits, 1 it does not. Only headers are read.\n"
      "Example:\n"
      "  savegate estimate checkpoints/step_1000 --limit 512GiB --resident 0 --sleeping 80GiB");
  estimate->callback([&] { chosen = [&] { return estimate_command(estimating); }; });

  std::string controls;
  std::vector<std::string> names;
  CLI::App* selftest = app.add_subcommand(
      "selftest", "show that each oracle catches a save path that is broken in its way");
  selftest->add_option("names", names, "controls to run; default: all");
  selftest->add_option("--controls", controls,
                       "file of negative controls, in place of savegate's own");
  add_options(*selftest, options);
  selftest->callback([&] { chosen = [&] { return selftest_command(controls, names, options); }; });

  if (const auto assigned = check_assignments(argc, argv); !assigned)
    return report_error(assigned.error());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kPassed : kUsage;
  }
  if (const auto sound =
          check_words(*app.get_subcommands().front(), {.subcommand = "", .command = command});
      !sound)
    return report_error(sound.error());
  return chosen();
}

}  // namespace
}  // namespace savegate::cli

int main(int argc, char** argv) { return savegate::cli::main_checked(argc, argv); }
