// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Documents of reporters, with the fields that they have: %s is where a case adds something.
const (
	jestDocument = `{"numFailedTests":1,"numPassedTests":%d,"startTime":%d,"success":false,"testResults":[{"assertionResults":[{"ancestorTitles":["cart"],` +
		`"duration":%[1]d,"startAt":%[2]d,"failureMessages":["Error: expected 4, got 3\n    at f (/workspace/a.test.js:%[1]d:3)"],"status":"failed","title":"adds"}],` +
		`"endTime":%[2]d,"message":"adds: no%[3]s","name":"/workspace/a.test.js","status":"failed"}%[4]s],"padding":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`
	rspecDocument = `{"version":"3.13.0","messages":[%s],"seed":%d,"examples":[{"description":"adds","full_description":"Cart adds","status":"failed",` +
		`"file_path":"./spec/a_spec.rb","line_number":%[2]d,"run_time":0.%[2]d,"exception":{"class":"E","message":"expected: 4\n got: 3","backtrace":["./spec/a_spec.rb:%[2]d:in 'block'"]}}%[4]s],` +
		`"summary":{"duration":0.%[2]d,"example_count":%[2]d,"failure_count":1,"errors_outside_of_examples_count":%[3]d},"summary_line":"%[2]d examples, 1 failure"}`
	mochaDocument = `{"stats":{"suites":1,"tests":%d,"passes":%[1]d,"failures":1,"start":"2026-11-27T17:17:%02[1]d.012Z","duration":%[1]d},"tests":[{"title":"adds","fullTitle":"cart adds","duration":%[1]d,"err":{"message":"no"}}%[2]s],` +
		`"passes":[%[3]s],"failures":[{"title":"adds","fullTitle":"cart adds","file":"/workspace/a.js","duration":%[1]d,"err":{"message":"no","stack":"Error: no\n    at f (/workspace/a.js:%[1]d:1)"}}]}`
	pyrightDocument = "{\n    \"version\": \"1.1.400\",\n    \"generalDiagnostics\": [\n        {\n            \"file\": \"/workspace/a.py\",\n            \"severity\": \"error\",\n" +
		"            \"message\": \"x is not defined\",\n            \"range\": {\"start\": {\"line\": 0, \"character\": 0}},\n            \"rule\": \"reportX\"\n        }%s\n    ],\n    \"summary\": {\n        \"errorCount\": 1\n    }\n}"
	shellcheckDocument = `[{"file":"a.sh","line":2,"endLine":2,"column":3,"level":"error","code":1073,"message":"Couldn't parse this if expression.","fix":null}%s]`
	golangciDocument   = `{"Issues":[{"FromLinter":"errcheck","Text":"Error return value is not checked","Pos":{"Filename":"a.go","Line":3,"Column":4}}%s],"Report":{%s}}`
	eslintDocument     = `[{"filePath":"/workspace/a.js","messages":[{"ruleId":"%s","severity":2,"message":"Bad.","line":1,"column":1}%s],"errorCount":1}]`
	stylelintDocument  = `[{"source":"/workspace/a.css","invalidOptionWarnings":[%s],"errored":true,"warnings":[{"line":1,"column":2,"rule":"color-no-invalid-hex","severity":"error","text":"Unexpected invalid hex color"}]}]`
	scannerDocument    = `{"SchemaVersion":2,"Results":[{"Vulnerabilities":[%s]}]}`
	goEventJSON        = `{"Time":"2026-11-27T17:17:%02d.1Z","Action":"%s","Package":"example.org/x","Test":"%s","Elapsed":0.%[1]d,"Output":"%[4]s"}` + "\n"
)

// What a document of JSON says counts, whatever names it has, except for what differs from run to run.
func TestDocuments(t *testing.T) {
	jest := func(n int, message, file string) string {
		return fmt.Sprintf(jestDocument, n, 1795800699012+n, message, file)
	}
	const jestPasses = `,{"assertionResults":[{"ancestorTitles":[],"failureMessages":[],"status":"passed","title":"new"}],"message":"","name":"/workspace/b.test.js","status":"passed"}`
	jestCannot := func(why string) string {
		return `,{"assertionResults":[],"message":"Test suite failed to run: ` + why + `","name":"/workspace/b.test.js","status":"failed"}`
	}
	const rspecPasses, mochaPasses = `,{"description":"x","full_description":"Cart x","status":"passed"}`, `{"title":"x","fullTitle":"cart x","duration":1,"err":{}}`
	goEvents := func(n int, more string) string {
		return fmt.Sprintf(goEventJSON, n, "run", "TestOld", "") + fmt.Sprintf(goEventJSON, n, "output", "TestOld", `    x_test.go:3: no\n`) + more +
			fmt.Sprintf(goEventJSON, n, "output", "TestOld", `--- FAIL: TestOld (0.0`+fmt.Sprint(n)+`s)\n`) + fmt.Sprintf(goEventJSON, n, "fail", "TestOld", "")
	}
	for name, test := range map[string]struct{ head, base, want string }{
		"jest":                               {jest(4, "", ""), jest(5, "", ""), proposal.BaseSame},
		"jest, a new file passes":            {jest(4, "", jestPasses), jest(5, "", ""), proposal.BaseSame},
		"jest, other source":                 {jest(4, `\n    > 4 | test(a)\n        |     ^\n      5 | b`, ""), jest(4, `\n    > 14 | test(c)\n         |       ^\n      15 | d`, ""), proposal.BaseSame},
		"jest, afterAll of the same file":    {jest(4, "; afterAll: leak", ""), jest(4, "", ""), proposal.BaseDifferent},
		"jest, a suite cannot run":           {jest(4, "", jestCannot("x")), jest(4, "", ""), proposal.BaseNew},
		"jest, for another reason":           {jest(4, "", jestCannot("Cannot find module y")), jest(4, "", jestCannot("SyntaxError")), proposal.BaseNew},
		"rspec":                              {fmt.Sprintf(rspecDocument, "", 3, 0, ""), fmt.Sprintf(rspecDocument, "", 9, 0, ""), proposal.BaseSame},
		"rspec, a new test passes":           {fmt.Sprintf(rspecDocument, "", 3, 0, rspecPasses), fmt.Sprintf(rspecDocument, "", 9, 0, ""), proposal.BaseSame},
		"rspec, after(:suite)":               {fmt.Sprintf(rspecDocument, `"An error occurred in an after(:suite) hook."`, 3, 1, ""), fmt.Sprintf(rspecDocument, "", 3, 0, ""), proposal.BaseDifferent},
		"mocha":                              {fmt.Sprintf(mochaDocument, 4, "", ""), fmt.Sprintf(mochaDocument, 5, "", ""), proposal.BaseSame},
		"mocha, a new test passes":           {fmt.Sprintf(mochaDocument, 4, ","+mochaPasses, mochaPasses), fmt.Sprintf(mochaDocument, 5, "", ""), proposal.BaseSame},
		"mocha, another message":             {strings.ReplaceAll(fmt.Sprintf(mochaDocument, 4, "", ""), `"no"`, `"never"`), fmt.Sprintf(mochaDocument, 4, "", ""), proposal.BaseDifferent},
		"pyright":                            {fmt.Sprintf(pyrightDocument, ""), fmt.Sprintf(pyrightDocument, ""), proposal.BaseSame},
		"pyright, without a rule":            {fmt.Sprintf(pyrightDocument, ",\n{\"file\": \"/workspace/b.py\", \"severity\": \"error\", \"message\": \"Expected expression\",\n\"range\": {\"start\": {\"line\": 4, \"character\": 0}}}"), fmt.Sprintf(pyrightDocument, ""), proposal.BaseDifferent},
		"shellcheck, a warning":              {fmt.Sprintf(shellcheckDocument, `,{"file":"b.sh","line":2,"level":"warning","code":2115,"message":"Use ${var:?}","fix":null}`), fmt.Sprintf(shellcheckDocument, ""), proposal.BaseNew},
		"shellcheck, as gcc does":            {"b.sh:1:1: warning: foo appears unused [SC2034]\na.sh:2:3: error: no [SC1073]\nb\nc\nd\n", "a.sh:2:3: error: no [SC1073]\nb\nc\nd\n", proposal.BaseNew},
		"golangci-lint, an error":            {fmt.Sprintf(golangciDocument, "", `"Error":"typechecking error"`), fmt.Sprintf(golangciDocument, "", ""), proposal.BaseDifferent},
		"golangci-lint, without a line":      {fmt.Sprintf(golangciDocument, `,{"FromLinter":"typecheck","Text":"build failed","Pos":{"Filename":"b.go","Line":0}}`, ""), fmt.Sprintf(golangciDocument, "", ""), proposal.BaseDifferent},
		"eslint":                             {fmt.Sprintf(eslintDocument, "semi", ""), fmt.Sprintf(eslintDocument, "semi", ""), proposal.BaseSame},
		"eslint, another rule":               {fmt.Sprintf(eslintDocument, "no-eval", ""), fmt.Sprintf(eslintDocument, "semi", ""), proposal.BaseDifferent},
		"eslint, without a line":             {fmt.Sprintf(eslintDocument, "semi", `,{"ruleId":null,"fatal":true,"severity":2,"message":"Parsing error"}`), fmt.Sprintf(eslintDocument, "semi", ""), proposal.BaseDifferent},
		"eslint, without a rule":             {fmt.Sprintf(eslintDocument, "semi", `,{"ruleId":null,"severity":2,"message":"Definition for rule x not found.","line":1,"column":1}`), fmt.Sprintf(eslintDocument, "semi", ""), proposal.BaseDifferent},
		"stylelint, an unknown rule":         {fmt.Sprintf(stylelintDocument, `{"text":"Unknown rule x."}`), fmt.Sprintf(stylelintDocument, ""), proposal.BaseDifferent},
		"a scanner before the tests":         {fmt.Sprintf(scannerDocument, `{"id":"CVE-1"}`) + "\n" + goOld, fmt.Sprintf(scannerDocument, "") + "\n" + goOld, proposal.BaseDifferent},
		"a scanner behind the tests":         {goOld + fmt.Sprintf(scannerDocument, `{"id":"CVE-1"}`), goOld + fmt.Sprintf(scannerDocument, ""), proposal.BaseDifferent},
		"on several lines":                   {"{\n  \"id\": \"CVE-1\"\n}\n" + goOld, "{\n  \"id\": \"CVE-2\"\n}\n" + goOld, proposal.BaseDifferent},
		"the same scanner":                   {fmt.Sprintf(scannerDocument, `{"id":"CVE-1"}`) + "\n" + goMore, fmt.Sprintf(scannerDocument, `{"id":"CVE-1"}`) + "\n" + goMore, proposal.BaseSame},
		"cut":                                {`{"id":"CVE-1","a":[` + "\n" + goOld, `{"id":"CVE-2","a":[` + "\n" + goOld, proposal.BaseDifferent},
		"a name twice":                       {`{"id":"CVE-1","id":"x"}` + "\n" + goOld, `{"id":"CVE-2","id":"x"}` + "\n" + goOld, proposal.BaseDifferent},
		"not alone on its line":              {`{"id":"CVE-1"} 1` + "\n" + goOld, `{"id":"CVE-1"} 2` + "\n" + goOld, proposal.BaseDifferent},
		"a large number":                     {`{"id":10000000000000001}`, `{"id":10000000000000002}`, proposal.BaseDifferent},
		"a log":                              {`{"level":"error","duration":3.2,"time":"2026-11-27T17:17:38Z","msg":"no list"}`, `{"level":"error","duration":17,"time":"2026-11-27T17:18:02Z","msg":"no list"}`, proposal.BaseSame},
		"a range":                            {`{"msg":"range is wrong","start":3,"end":9}`, `{"msg":"range is wrong","start":3,"end":11}`, proposal.BaseDifferent},
		"a duration that a test compares":    {`{"expected":{"duration":3},"actual":{"duration":4}}`, `{"expected":{"duration":3},"actual":{"duration":5}}`, proposal.BaseDifferent},
		"a duration that a log compares":     {`{"level":"error","msg":"x","actual":{"duration":4}}`, `{"level":"error","msg":"x","actual":{"duration":5}}`, proposal.BaseDifferent},
		"no event":                           {`{"Action":"deny","Package":"a"}` + "\n" + goOld, `{"Action":"deny","Package":"b"}` + "\n" + goOld, proposal.BaseDifferent},
		"an event with a finding":            {`{"Action":"pass","Package":"a","CVE":"1"}` + "\n" + goOld, goOld, proposal.BaseDifferent},
		"go test -json":                      {goEvents(1, ""), goEvents(2, ""), proposal.BaseSame},
		"go test -json, a new test passes":   {goEvents(1, fmt.Sprintf(goEventJSON, 1, "run", "TestNew", "")+fmt.Sprintf(goEventJSON, 1, "pass", "TestNew", "")), goEvents(2, ""), proposal.BaseSame},
		"go test -json, a new test does not": {goEvents(1, fmt.Sprintf(goEventJSON, 1, "output", "TestNew", `--- FAIL: TestNew (0.00s)\n`)+fmt.Sprintf(goEventJSON, 1, "fail", "TestNew", "")), goEvents(2, ""), proposal.BaseNew},
	} {
		if got := Compare(ran(1, test.head+"\n"), ran(1, test.base+"\n")); got.Verdict != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
		if got := Compare(ran(1, test.head+"\n"), ran(1, test.head+"\n")); got.Verdict != proposal.BaseSame {
			t.Errorf("%s, with itself: %+v", name, got)
		}
	}
}
