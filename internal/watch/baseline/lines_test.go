// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What two runs of the same code print, as the tools print it, and the same form with a difference that
// means something.
var (
	sameLines = map[string][2]string{
		"Go's directory":      {"open /tmp/TestNew1234567/001/a.txt: no such file", "open /tmp/TestNew890123/001/a.txt: no such file"},
		"a hidden directory":  {"cannot link /tmp/.tmpXa81bQ/x.o", "cannot link /tmp/.tmpb7GGk1/x.o"},
		"an object file":      {"/usr/bin/ld: /tmp/ccXaBqz0.o: undefined reference to `f'", "/usr/bin/ld: /tmp/ccb7GGk1.o: undefined reference to `f'"},
		"a prefix":            {"ENOENT: /tmp/jest-1d2e3f4a/a.js", "ENOENT: /tmp/jest-00ab12cd/a.js"},
		"Python's default":    {"open /tmp/tmpab12_x9z/a", "open /tmp/tmpqqwertyu/a"},
		"a goroutine":         {"goroutine 17 [running]:", "goroutine 21 [running]:"},
		"its creator":         {"created by testing.(*T).Run in goroutine 1", "created by testing.(*T).Run in goroutine 9"},
		"Go's arguments":      {"main.f(0xc0000b4000, 0x3)", "main.f(0xc000123458, 0x3)"},
		"a Python object":     {"<Cart object at 0x7f1d2c3b4a59> is not iterable", "<Cart object at 0x7f0000000001> is not iterable"},
		"pytest's end":        {"===== 1 failed, 2 passed in 0.12s =====", "===== 1 failed, 2 passed in 1.30s ====="},
		"Go's end":            {"FAIL\texample.org/x\t0.012s", "FAIL\texample.org/x\t1.300s"},
		"Jest's end":          {"Time:        1.2 s, estimated 2 s", "Time:        0.812 s, estimated 1 s"},
		"Vitest's end":        {"   Duration  1.20s (transform 30ms, setup 0ms, collect 12ms, tests 3ms, environment 0ms, prepare 50ms)", "   Duration  830ms (transform 3ms, setup 1ms, collect 1ms, tests 2ms, environment 4ms, prepare 5ms)"},
		"Vitest's start":      {"   Start at  17:17:38", "   Start at  17:18:02"},
		"RSpec's end":         {"Finished in 0.01 seconds (files took 0.1 seconds to load)", "Finished in 1 minute 0.2 seconds (files took 0.33 seconds to load)"},
		"Cargo's end":         {"test result: FAILED. 0 passed; 1 failed; 0 ignored; finished in 0.00s", "test result: FAILED. 0 passed; 1 failed; 0 ignored; finished in 1.20s"},
		"Cargo's build":       {"    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.53s", "    Finished `test` profile [unoptimized + debuginfo] target(s) in 1m 02s"},
		"unittest's end":      {"Ran 3 tests in 0.001s", "Ran 3 tests in 0.203s"},
		"Surefire's end":      {"Tests run: 1, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE!", "Tests run: 1, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1.2 s <<< FAILURE!"},
		"node's line":         {"✖ breaks (0.807447ms)", "✖ breaks (12.1ms)"},
		"node's todo":         {"✖ later (0.807447ms) # TODO", "✖ later (12.1ms) # TODO"},
		"Mocha's end":         {"  1 passing (2ms)", "  1 passing (1s)"},
		"GoogleTest's line":   {"[  FAILED  ] Cart.Adds (0 ms)", "[  FAILED  ] Cart.Adds (12 ms)"},
		"time(1)":             {"real\t0m0.012s", "real\t1m3.300s"},
		"logrus":              {`time="2026-11-27T17:17:38Z" level=error msg="no db"`, `time="2026-11-27T17:18:02Z" level=error msg="no db"`},
		"a time of day":       {"[17:17:38] Starting 'test'", "[17:18:02] Starting 'test'"},
		"npm's log":           {"npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-27T17_17_38_123Z-debug-0.log", "npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-27T17_18_02_007Z-debug-1.log"},
		"npm's rename":        {"npm error ENOTEMPTY: directory not empty, rename '/w/node_modules/ms' -> '/w/node_modules/.ms-Xa81bQz0'", "npm error ENOTEMPTY: directory not empty, rename '/w/node_modules/ms' -> '/w/node_modules/.ms-b7GGk1aa'"},
		"npm's cache":         {"npm error path /root/.npm/_cacache/tmp/1f2e3d4c", "npm error path /root/.npm/_cacache/tmp/99aabb00"},
		"pnpm's copy":         {"ENOSPC: no space left, copyfile '/w/node_modules/.pnpm/ms_tmp_17'", "ENOSPC: no space left, copyfile '/w/node_modules/.pnpm/ms_tmp_203'"},
		"yarn's log":          {"➤ YN0009: │ re2@npm:1.20.1 couldn't be built successfully (exit code 1, logs can be found here: /tmp/xfs-1d2e3f4a/build.log)", "➤ YN0009: │ re2@npm:1.20.1 couldn't be built successfully (exit code 1, logs can be found here: /tmp/xfs-00ab12cd/build.log)"},
		"yarn's end":          {"➤ YN0000: Failed with errors in 1s 203ms", "➤ YN0000: Failed with errors in 2s 18ms"},
		"vite's config":       {"failed to load config from /w/node_modules/.vite-temp/vite.config.ts.timestamp-1795799858123-9f1a2b3c4d5e6.mjs", "failed to load config from /w/node_modules/.vite-temp/vite.config.ts.timestamp-1795799899001-00aa12.mjs"},
		"a log's time":        {"2026/11/27 17:17:38 cannot open db", "2026/11/27 17:18:02 cannot open db"},
		"date(1)":             {"Fri Nov 27 17:17:38 UTC 2026 no config", "Fri Nov 27 17:18:02 UTC 2026 no config"},
		"an HTTP date":        {"date: Fri, 27 Nov 2026 17:17:38 GMT", "date: Fri, 27 Nov 2026 17:18:02 GMT"},
		"Java's log":          {"Nov 27, 2026 5:17:38 PM org.example.App main", "Nov 27, 2026 5:18:02 PM org.example.App main"},
		"Maven's end":         {"[INFO] Finished at: 2026-11-27T17:17:38Z", "[INFO] Finished at: 2026-11-27T17:18:02Z"},
		"glog":                {"E1127 17:17:38.123456   12 db.cc:31] no such table", "E1127 17:18:02.654321 4711 db.cc:32] no such table"},
		"Gradle's end":        {"BUILD FAILED in 59s", "BUILD FAILED in 1m 3s"},
		"CTest's column":      {"1/2 Test #1: adds ......***Failed    0.01 sec", "1/2 Test #1: adds ......***Failed   10.25 sec"},
		"PHPUnit's end":       {"Time: 00:00.012, Memory: 6.00 MB", "Time: 00:01.212, Memory: 8.00 MB"},
		"minitest's end":      {"Finished in 0.001203s, 831.2551 runs/s, 831.2551 assertions/s.", "Finished in 0.000973s, 1027.7492 runs/s, 1027.7492 assertions/s."},
		"pytest's directory":  {"basetemp: build/pytest-of-root/pytest-0", "basetemp: build/pytest-of-root/pytest-12"},
		"Go's build":          {"exec: /var/cache/go-build123/b001/x.test", "exec: /var/cache/go-build987654/b001/x.test"},
		"mktemp":              {"cannot remove build/tmp.Xa81bQz0aa", "cannot remove build/tmp.b7GGk1aaZZ"},
		"Python's tempfile":   {"cannot remove /w/build/tmpab12_x9z", "cannot remove /w/build/tmpzz98kq_0"},
		"a process":           {"server (pid 12) is gone, see hs_err_pid12.log", "server (pid 4711) is gone, see hs_err_pid4711.log"},
		"Node's warning":      {"(node:31) DeprecationWarning: punycode", "(node:178) DeprecationWarning: punycode"},
		"a sanitizer":         {"==17==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010", "==312==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000ab0"},
		"Rust's thread":       {"thread 'main' (17) panicked at src/main.rs:3:5:", "thread 'main' (312) panicked at src/main.rs:4:5:"},
		"Cargo's binary":      {"process didn't exit successfully: `/w/target/debug/deps/shop-0123456789abcdef` (exit status: 101)", "process didn't exit successfully: `/w/target/debug/deps/shop-fedcba9876543210` (exit status: 101)"},
		"a Java object":       {"expected: <com.example.Cart@1b2c3d4e> but was: <null>", "expected: <com.example.Cart@7a8b9c0d> but was: <null>"},
		"a Ruby object":       {"undefined method 'x' for #<Cart:0x00007f1d2c3b4a59>", "undefined method 'x' for #<Cart:0x00007f0000000001>"},
		"an ephemeral port":   {"dial tcp 127.0.0.1:41234: connect: connection refused", "dial tcp 127.0.0.1:38122: connect: connection refused"},
		"a port that was 0":   {"listening on port 41234", "listening on port 38122"},
		"RSpec's seed":        {"Randomized with seed 12345", "Randomized with seed 907"},
		"minitest's seed":     {"Run options: --seed 12345", "Run options: --seed 907"},
		"pytest-randomly":     {"Using --randomly-seed=1234567", "Using --randomly-seed=89"},
		"PHPUnit's seed":      {"Random Seed:   1795799858", "Random Seed:   1795799901"},
		"ExUnit's seed":       {"Running ExUnit with seed: 12345, max_cases: 4", "Running ExUnit with seed: 907, max_cases: 4"},
		"GoogleTest's seed":   {"Note: Randomizing tests' orders with a seed of 12345 .", "Note: Randomizing tests' orders with a seed of 907 ."},
		"Go's seed":           {"-test.shuffle 1795799858123456789", "-test.shuffle 1795799901000000001"},
		"another seed":        {"Using seed: 12", "Using seed: 1377"},
		"a download":          {"no lock file", "     ━━━━━━╸━━━━ 1.2/3.4 MB 5.1 MB/s eta 0:00:01\nno lock file"},
		"a download's meter":  {" 45% [=====>     ] 12/27 ETA 3s\nno lock file", " 45% [=====>     ] 12/27 ETA 4s\n 90% [=========> ] 25/27 ETA 1s\nno lock file"},
		"a bar in color":      {"no rows", "\x1b[32m━━━━━━╸━━━━\x1b[0m 1.2/3.4 MB\nno rows"},
		"tqdm":                {"no rows", " 45%|████▌     | 45/100 [00:01<00:01, 30.12it/s]\nno rows"},
		"overwritten":         {"10%\rdone", "20%\r30%\rdone"},
		"colors":              {"\x1b[31mno config\x1b[0m", "no config"},
		"a line that moved":   {"src/a.ts(3,1): not found", "src/a.ts(14,9): not found"},
		"TAP's duration":      {"# duration_ms 776.166988", "# duration_ms 81"},
		"a duration in a run": {"FAIL example (12 ms)", "FAIL example (7 ms)"},
	}
	otherLines = map[string][2]string{
		"a date in a name":            {"invoice 20240229-101010 missing", "invoice 20240301-101010 missing"},
		"seconds since 1970":          {"order 1795799858 missing", "order 1795799859 missing"},
		"a duration in words":         {"gave up after 1h2m3s", "gave up after 58m1.5s"},
		"a UUID":                      {"no user 0b9f1c2e-1111-4222-8333-444455556666", "no user 7c1d2e3f-9999-4888-8777-666655554444"},
		"a limit":                     {"timeout is 5s, limit 30s", "timeout is 5s, limit 0s"},
		"a limit, without words":      {"5s > 3s", "5s > 1s"},
		"a value in another language": {"erwartet 5s, erhalten 7s", "erwartet 5s, erhalten 9s"},
		"a duration that is compared": {"5s isn't 7s", "5s isn't 9s"},
		"a value on the next line":    {"Expected:\n  5s\nReceived:\n  7s", "Expected:\n  5s\nReceived:\n  9s"},
		"a value of a snapshot":       {"  - 5s\n  + 7s", "  - 5s\n  + 9s"},
		"a digest":                    {"digest differs: 0123456789abcdef0123456789abcdef", "digest differs: 99999999999999990123456789abcdef"},
		"a commit that is missing":    {"submodule commit 0123456789abcdef0123456789abcdef01234567 not found", "submodule commit 99990123456789abcdef0123456789abcdef0123 not found"},
		"an invalid date":             {"invalid date 2024-02-30 10:00", "invalid date 2023-02-29 10:00"},
		"an hour":                     {"train at 10:15:00 missing", "train at 11:15:00 missing"},
		"a day":                       {"Meeting Jan 3 10:00:00 missing", "Meeting Feb 9 10:00:00 missing"},
		"a null pointer":              {"segfault at 0x0", "segfault at 0xdeadbeef"},
		"flags":                       {"expected 0x1, got 0x2", "expected 0x1, got 0x3"},
		"a code of Windows":           {"HRESULT 0x80004005", "HRESULT 0x80070002"},
		"a hash of 64 bits":           {"got 0xcbf29ce484222325", "got 0xcbf29ce484222326"},
		"a number of 48 bits":         {"got 0x123456789ab0", "got 0x123456789ab1"},
		"a file below /tmp":           {"no such file: /tmp/config/a.yaml", "no such file: /tmp/data/secret.db"},
		"a file deep below /tmp":      {"cannot open /tmp/x/src/new_handler.go", "cannot open /tmp/x/src/old_handler.go"},
		"a case below /tmp":           {"differs: /tmp/case1/config2", "differs: /tmp/case2/config2"},
		"a test below /tmp":           {"open /tmp/TestNew1234567/a: no", "open /tmp/TestOld1234567/a: no"},
		"a reason behind /tmp":        {"open /tmp/tmp.Xa81bQz0aa=permission-denied", "open /tmp/tmp.Xa81bQz0aa=no-such-file"},
		"MongoDB's port":              {"cannot reach 127.0.0.1:27017", "cannot reach 127.0.0.1:26379"},
		"Kafka's port":                {"cannot reach port 27017", "cannot reach port 16379"},
		"ActiveMQ's port":             {"localhost:61616 is down", "localhost:50051 is down"},
		"a node port":                 {"localhost:30080 is down", "localhost:32767 is down"},
		"a port of another host":      {"bad listen address 0.0.0.0:33000", "bad listen address 0.0.0.0:40000"},
		"the port of a name":          {"cannot reach db.local:5432", "cannot reach db.local:3306"},
		"a seed that fails":           {"seed=12 fails: index out of range", "seed=13 fails: index out of range"},
		"a shuffle that fails":        {"-shuffle 3 panics", "-shuffle 4 panics"},
		"an address of mail":          {"unknown user Bob@12345", "unknown user Bob@99999"},
		"a version of a package":      {"no package A@123456", "no package A@654321"},
		"a size":                      {"memory: 512 MB is not enough", "memory: 256 MB is not enough"},
		"a rate":                      {"throughput 30 ops/s below limit", "throughput 10 ops/s below limit"},
		"a table":                     {"no table user_tmp_1", "no table user_tmp_2"},
		"a word with tmp":             {"name tmp.abcdef missing", "name tmp.zzzzzz missing"},
		"a goroutine it is about":     {"deadlock in goroutine 1", "deadlock in goroutine 9"},
		"a process it is about":       {"process 3 failed", "process 4 failed"},
		"a pid it is about":           {"pid=1 is not mine", "pid=2 is not mine"},
		"a thread it is about":        {"thread 'main' (12) x", "thread 'main' (13) x"},
		"equal signs":                 {"==3== tests ok", "==4== tests ok"},
		"words behind Time":           {"Time: 5s is over the limit", "Time: 6s is over the limit"},
		"a duration behind a colon":   {"error: timeout (5s)", "error: timeout (0s)"},
		"what a scan found":           {"Scanning 10/10 [##########] 1 vulnerability found", "Scanning 10/10 [##########] 3 CRITICAL vulnerabilities found"},
		"a module with a bar":         {"old", "5/5 [=====] module billing is wrong\nold"},
		"tests with a bar":            {"old", "12/30 tests broken ETA [==========]\nold"},
		"a rate with words":           {"old", "py311: invalid 3/10 12.1 it/s\nold"},
		"words of another script":     {"old", "3/10 [=====] 失败\nold"},
		"a sign with a bar":           {"3/10 [=====] ✔", "3/10 [=====] ✗"},
		"an overwritten failure":      {"NEW FAILURE\rdone", "done"},
		"an overwritten one, counted": {"3/4 broken\rdone", "done"},
		"behind 4 KiB":                {strings.Repeat("x", maxLine) + " A", strings.Repeat("x", maxLine) + " B"},
		"a value":                     {"expected 3, got 4", "expected 3, got 5"},
		"a time that a test is about": {"expected 2024-02-29T00:00:00Z, got 2024-03-01T00:00:00Z", "expected 2024-02-29T00:00:00Z, got 2024-02-28T00:00:00Z"},
		"a date":                      {"invoice of 2024-02-29 is missing", "invoice of 2024-03-01 is missing"},
		"a duration it is about":      {"expected 5s, got 7s", "expected 5s, got 9s"},
		"a comparison":                {"rounds: 90s == 91s", "rounds: 90s == 95s"},
		"a checksum":                  {"checksum mismatch: 0123456789abcdef0123456789abcdef", "checksum mismatch: 99999999999999990123456789abcdef"},
		"a UUID it is about":          {"want 0b9f1c2e-1111-4222-8333-444455556666", "want 7c1d2e3f-9999-4888-8777-666655554444"},
		"a count":                     {"3 failed, 2 passed", "2 failed, 3 passed"},
		"problems":                    {"✖ 12 problems (12 errors, 0 warnings)", "✖ 11 problems (11 errors, 0 warnings)"},
		"an exit code":                {"make: *** [Makefile:3: test] Error 2", "make: *** [Makefile:3: test] Error 1"},
		"a process's exit code":       {"Process completed with exit code 3.", "Process completed with exit code 4."},
		"coverage":                    {"Coverage for lines (79%) does not meet threshold (80%)", "Coverage for lines (71%) does not meet threshold (80%)"},
		"coverage with a bar":         {"coverage [=====>     ] 79% of 100%", "coverage [=====>     ] 71% of 100%"},
		"a percentage":                {"discount is 10%", "discount is 15%"},
		"progress of an error":        {"error at 45% [=====>     ]", "error at 46% [=====>     ]"},
		"a well-known port":           {"dial tcp 127.0.0.1:5432: connect: connection refused", "dial tcp 127.0.0.1:3306: connect: connection refused"},
		"a version":                   {"npm error notarget No matching version found for ms@9.0.1", "npm error notarget No matching version found for ms@9.0.2"},
		"a commit":                    {"cannot fetch owner/repo@1234567", "cannot fetch owner/repo@7654321"},
		"a package":                   {"npm error 404 'left-pad@1' is not in this registry", "npm error 404 'right-pad@1' is not in this registry"},
		"a file":                      {"cannot open src/a.ts", "cannot open src/b.ts"},
		"a status":                    {"GET / 404", "GET / 500"},
		"a price":                     {"total: 1795", "total: 1796"},
		"npm's code":                  {"npm error code EUSAGE", "npm error code E404"},
		"a seed's value":              {"seed tomatoes: 3 rows missing", "seed tomatoes: 4 rows missing"},
		"a memory that is said":       {"heap of 3 pages is too small", "heap of 4 pages is too small"},
	}
)

func TestVolatileLines(t *testing.T) {
	lines := func(text string) string {
		return strings.Join(linesOf(proposal.Stream{Head: []byte(text + "\n")}), "\n")
	}
	for name, pair := range sameLines {
		if a, b := lines(pair[0]), lines(pair[1]); a != b {
			t.Errorf("%s:\n%s\n%s", name, a, b)
		}
		if got := Compare(ran(1, pair[0]+"\n"), ran(1, pair[1]+"\n")); got.Verdict != proposal.BaseSame {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, pair := range otherLines {
		if a, b := lines(pair[0]), lines(pair[1]); a == b {
			t.Errorf("%s: %s", name, a)
		}
	}
}
