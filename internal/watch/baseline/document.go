// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
)

// documentMark begins a line that is a JSON document, or a line behind one that cannot be read.
const documentMark = "\x00"

// maxLists is the number of lists that may be around the first object of a document.
const maxLists = 3

// beginsDocument reports whether text, which is not empty, begins with an object that has a field, or with a
// list of such.
func beginsDocument(text []byte) bool {
	if text[0] != '{' && text[0] != '[' {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for range maxLists + 1 {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if token == json.Delim('[') {
			continue
		}
		if token != json.Delim('{') {
			return false
		}
		if key, err := decoder.Token(); err != nil || key == json.Delim('}') {
			return false
		}
		_, err = decoder.Token()
		return err == nil
	}
	return false
}

// readDocument returns the document that text begins with, as a line, and its length. It is 0 if the
// document is cut, is not alone on its lines or has a name twice.
func readDocument(text []byte) (line string, length int) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if decoder.Decode(&raw) != nil {
		return "", 0
	}
	length = int(decoder.InputOffset())
	behind, _, found := bytes.Cut(text[length:], []byte("\n"))
	if len(bytes.TrimSpace(behind)) > 0 || strictjson.CheckNames(raw) != nil {
		return "", 0
	}
	if length += len(behind); found {
		length++
	}
	event, isEvent := readGoEvent(raw)
	switch {
	case isEvent && event.Output != "": // a line of text
		return clipLine([]byte(strings.TrimSpace(event.Output))), length
	case isEvent && slices.Contains(passingActions, event.Action):
		return "", length
	}
	var v any
	decoder = json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return "", 0
	}
	v = reduceReport(v, isReport(v))
	if object, ok := v.(map[string]any); ok && (isLogLine(object) || isEvent) {
		for _, key := range []string{"duration", "elapsed", "time", "timestamp", "ts", "Time", "Elapsed"} {
			delete(object, key)
		}
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return "", 0
	}
	return documentMark + string(encoded), length
}

// A goEvent is an event of go test -json.
type goEvent struct {
	Time, Action, Package, ImportPath, Test, Output, OutputType, FailedBuild string
	Elapsed                                                                  float64
}

// passingActions are those of events without output that say of no failure.
var passingActions = []string{"start", "run", "pause", "cont", "pass", "skip", "bench"}

// readGoEvent returns the event that a document is, if it has nothing else.
func readGoEvent(raw []byte) (event goEvent, ok bool) {
	ok = bytes.Contains(raw, []byte(`"Action"`)) && strictjson.Decode(raw, &event) == nil && event.Action != "" &&
		event.Package+event.ImportPath != ""
	return event, ok
}

// isReport reports whether a document is one of Jest or Vitest, Mocha, or RSpec.
func isReport(v any) bool {
	object, _ := v.(map[string]any)
	has := func(key string) bool { return object[key] != nil }
	return has("testResults") || has("stats") && has("failures") || has("examples") && has("summary")
}

// isLogLine reports whether an object is a line of a log.
func isLogLine(object map[string]any) bool {
	level, _ := object["level"].(string)
	message, isMessage := object["message"].(string)
	if !isMessage {
		message, isMessage = object["msg"].(string)
	}
	return level != "" && isMessage && message != "" && object["file"] == nil && object["line"] == nil
}

var (
	// reportKeys are the keys of reports below which tests, times and totals are.
	reportKeys = []string{"testResults", "assertionResults", "stats", "tests", "failures", "examples", "summary"}
	// volatileKeys are those of times, and of totals that count tests that pass, too.
	volatileKeys = []string{"duration", "run_time", "runtime", "load_time", "startTime", "startAt", "endTime", "start",
		"end", "seed",
		"numPassedTests", "numTotalTests", "numPassedTestSuites", "numTotalTestSuites", "numPendingTests", "numPendingTestSuites", "numTodoTests",
		"suites", "tests", "passes", "pending", "example_count", "pending_count", "summary_line", "line_number"}
	// passingKeys are those of lists of tests that pass or did not run, and of their times.
	passingKeys = []string{"passes", "pending", "perfStats"}
)

// sourceLine is a line of the source around a failure, in what Jest says of a file. The messages of its
// tests have none.
var sourceLine = pattern.New(`(?m)^ {2,8}(?:> *|  *)(?:\d{1,7} \|.*| \| *\^+)$`)

// reduce returns a JSON value without what is volatile in its texts and, in a report of a test runner,
// without tests that pass or did not run, times and totals. Everything else stays.
func reduceReport(v any, inReport bool) any {
	switch v := v.(type) {
	case string:
		return removeVolatileText(v)
	case []any:
		list := []any{}
		for _, element := range v {
			if element = reduceReport(element, inReport); !inReport || !isPassed(element) {
				list = append(list, element)
			}
		}
		return list
	case map[string]any:
		if message, isText := v["message"].(string); isText && inReport && v["assertionResults"] != nil {
			v["message"] = sourceLine.ReplaceAllString(message, "")
		}
		for key, field := range v {
			_, isNumber := field.(json.Number)
			_, isText := field.(string)
			_, isList := field.([]any)
			switch {
			case inReport && (isNumber || isText) && slices.Contains(volatileKeys, key),
				inReport && key == "perfStats", inReport && isList && slices.Contains(passingKeys, key):
				delete(v, key)
			default:
				v[key] = reduceReport(field, inReport && slices.Contains(reportKeys, key))
			}
		}
	}
	return v
}

// isPassed reports whether an element of a reduced report is a test that did not fail, or a file with
// nothing but such.
func isPassed(v any) bool {
	object, _ := v.(map[string]any)
	if object == nil {
		return false
	}
	if tests, isFile := object["assertionResults"].([]any); isFile {
		return object["status"] == "passed" && len(tests) == 0 && (object["message"] == "" || object["message"] == nil)
	}
	if err, isMocha := object["err"].(map[string]any); isMocha {
		return len(err) == 0
	}
	status, _ := object["status"].(string)
	return slices.Contains([]string{"passed", "pending", "skipped", "todo", "disabled"}, status)
}

// removeVolatileText is removeVolatile for each line of a text.
func removeVolatileText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clipLine([]byte(line))
	}
	return strings.Join(lines, "\n")
}
