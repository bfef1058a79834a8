// Run-time options of the sanitizers, part of every program of a sanitizer build, so that they hold however the program
// is started: by ctest, by hand, or by a test that runs the server. Variables like TSAN_OPTIONS add to them.
// The suppression files beside this one say why each entry is there.

#define COPPICE_SUPPRESSIONS(file) "suppressions=" COPPICE_SANITIZERS_DIR "/" file

extern "C" {

// Names the sanitizers' run time looks for.
const char* __asan_default_options();   // NOLINT(bugprone-reserved-identifier)
const char* __lsan_default_options();   // NOLINT(bugprone-reserved-identifier)
const char* __ubsan_default_options();  // NOLINT(bugprone-reserved-identifier)
const char* __tsan_default_options();   // NOLINT(bugprone-reserved-identifier)

const char* __asan_default_options() { return "detect_stack_use_after_return=1:strict_string_checks=1"; }

const char* __lsan_default_options() { return COPPICE_SUPPRESSIONS("lsan.supp") ":print_suppressions=0"; }

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

const char* __tsan_default_options() {
  return COPPICE_SUPPRESSIONS("tsan.supp") ":second_deadlock_stack=1:print_suppressions=0";
}

}  // extern "C"
