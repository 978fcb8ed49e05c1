// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"fmt"
	"strings"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// SchemaURL is the version of the semantic conventions that the names come from.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

// The maximum length of an attribute in UTF-16 units, and the maximum number of
// items of a list.
const (
	maxUnits = 1 << 10
	maxItems = 64
)

// An Attribute is one row of the table.
type Attribute struct {
	Key     string
	Type    string // "string", "int", "boolean" or "string[]"
	On      string // resource, span run, proposal, decide or execute, or log
	Meaning string
}

// Attributes lists every attribute that is ever sent.
var Attributes = []Attribute{
	{"service.name", "string", "resource", "always fumehood"},
	{"service.version", "string", "resource", "of fumehood"},
	{"service.instance.id", "string", "resource", "the run's id"},
	{"vcs.provider.name", "string", "resource", "github, if the run is for a pull request there"},
	{"vcs.owner.name", "string", "resource", "of the repository that the pull request is made to"},
	{"vcs.repository.name", "string", "resource", "its name without the owner"},
	{"vcs.change.id", "string", "resource", "number of the pull request"},
	{"vcs.ref.head.revision", "string", "resource", "the commit that ran"},
	{"vcs.ref.base.revision", "string", "resource", "the commit that policy was read at"},
	{"fumehood.fork", "string", "resource", "the repository of the code, if it is another"},
	{"fumehood.mode", "string", "resource", "enforce or observe"},
	{"fumehood.source", "string", "resource", "artifact, if another job left the data; otherwise absent"},
	{"fumehood.proposer", "string", "resource", "who wrote the plan"},
	{"fumehood.plan.digest", "string", "resource", "of the plan's document"},
	{"fumehood.policy.digest", "string", "resource", "of all layers of the policy"},
	{"fumehood.rootfs", "string", "resource", "the root file system of the commands"},
	{"fumehood.runsc.version", "string", "resource", "of gVisor"},

	{"cicd.pipeline.name", "string", "run", "always fumehood"},
	{"cicd.pipeline.run.id", "string", "run", "the run's id"},
	{"cicd.pipeline.action.name", "string", "run", "always RUN"},
	{"cicd.pipeline.result", "string", "run", "success, failure (something was denied, asked or failed), cancellation, timeout or error"},
	{"fumehood.proposals.proposed", "int", "run", "how many"},
	{"fumehood.proposals.allowed", "int", "run", "approved ones included"},
	{"fumehood.proposals.denied", "int", "run", ""},
	{"fumehood.proposals.asked", "int", "run", "that wait for a person"},
	{"fumehood.proposals.succeeded", "int", "run", ""},
	{"fumehood.proposals.failed", "int", "run", "that ran and did not succeed"},
	{"fumehood.proposals.could_not_run", "int", "run", "that could not run for a reason that is not the pull request's"},
	{"fumehood.proposals.failed_before", "int", "run", "that fail on the base of the pull request, too"},
	{"fumehood.proposals.not_run", "int", "run", "that were allowed and did not run"},
	{"fumehood.log.state", "string", "run", "sealed, sealed-untrusted if the log's key is not vouched for, or unsealed if the run was cut off; absent if only a report was read"},
	{"fumehood.times", "string", "run", "estimated, if only a report was read: commands are placed end to end"},
	{"fumehood.dropped_records", "int", "run", "decisions that are not sent because there were too many; the log has them"},
	{"error.type", "string", "run, proposal", "the code of why the run stopped, or how the command ended"},

	{"cicd.pipeline.task.name", "string", "proposal", "the proposal's id"},
	{"cicd.pipeline.task.run.id", "string", "proposal", "id of its decision"},
	{"cicd.pipeline.task.run.result", "string", "proposal", "success, failure, timeout, skip (denied, asked or not run) or error"},
	{"fumehood.proposal.id", "string", "proposal, log", ""},
	{"fumehood.proposal.form", "string", "proposal", "run, argv or code"},
	{"fumehood.proposal.phase", "string", "proposal", "setup or run"},

	{"process.command_line", "string", "decide, execute", "what would run, as it was analyzed"},
	{"process.working_directory", "string", "execute", "relative to the workspace"},
	{"process.exit.code", "int", "execute", "when it exited"},
	{"fumehood.result.status", "string", "execute", "exited, signaled, timed out, out of memory …"},
	{"fumehood.result.signal", "string", "execute", "that ended it"},
	{"fumehood.result.limit", "string", "execute", "that it reached"},
	{"fumehood.result.cpu_ms", "int", "execute", "processor time of the whole sandbox"},
	{"fumehood.result.peak_memory_bytes", "int", "execute", "of the whole sandbox"},
	{"fumehood.result.stdout_bytes", "int", "execute", "that it wrote"},
	{"fumehood.result.stderr_bytes", "int", "execute", "that it wrote"},
	{"fumehood.result.redacted", "int", "execute", "secrets that were replaced in what it wrote"},
	{"fumehood.result.execs", "int", "execute", "programs that began"},
	{"fumehood.result.execs_refused", "int", "execute", "programs that policy refused"},
	{"fumehood.result.network_refused", "int", "execute", "lookups, connections and requests that were refused"},
	{"fumehood.result.findings", "int", "execute", ""},

	{"fumehood.decision.id", "string", "decide, log", "run, slash, entry of the audit log: see fumehood show"},
	{"fumehood.decision.path", "string", "log", "the decision point: fumehood/exec"},
	{"fumehood.decision.effect", "string", "decide, log", "deny, ask or allow; of a finding note"},
	{"fumehood.decision.rules", "string[]", "decide, log", "ids of the rules that apply"},
	{"fumehood.decision.reason", "string", "decide, log", "the first rule against it"},
	{"fumehood.decision.suggestion", "string", "log", "what would be allowed instead"},
	{"fumehood.decision.observed", "boolean", "decide, log", "it would have been refused, but was only observed"},
	{"fumehood.decision.approved", "boolean", "decide, log", "a person approved what policy asked about"},
	{"fumehood.decision.code", "string", "log", "why the gateway ended a connection"},
	{"fumehood.command.index", "int", "log", "of the command in its proposal, from 0"},

	{"process.executable.path", "string", "log", "of the program, in the sandbox"},
	{"process.command_args", "string[]", "log", "its arguments"},
	{"process.pid", "int", "log", "in the sandbox"},
	{"process.parent_pid", "int", "log", "in the sandbox"},
	{"fumehood.exec.layer", "string", "log", "the location of the program's file: rootfs, workspace, written, memory or other"},
	{"fumehood.exec.digest", "string", "log", "of the program's file"},
	{"fumehood.egress.kind", "string", "log", "lookup, connect, hello, request or datagram"},
	{"dns.question.name", "string", "log", "that was looked up"},
	{"server.address", "string", "log", "name, or the address if there was no name"},
	{"server.port", "int", "log", ""},
	{"network.peer.address", "string", "log", "that the name resolved to"},
	{"network.protocol.name", "string", "log", "tcp, udp, icmp, tls, http or https"},
	{"http.request.method", "string", "log", ""},
	{"url.path", "string", "log", "without the query"},
	{"fumehood.event.kind", "string", "log", "what a finding is about"},
	{"file.path", "string", "log", "that it mentions"},
	{"fumehood.trigger.command", "string", "log", "run, approve, rerun, review, explain or help"},
	{"user.name", "string", "log", "who wrote the comment"},
}

// AttributeTable returns Attributes as Markdown.
func AttributeTable() string {
	var b strings.Builder
	b.WriteString("| attribute | type | on | what it is |\n| --- | --- | --- | --- |\n")
	for _, a := range Attributes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Key, a.Type, a.On, a.Meaning)
	}
	return b.String()
}

// attributes collects attributes in order. Empty ones are left out.
type attributes []*common.KeyValue

func (a *attributes) addValue(key string, v *common.AnyValue) {
	*a = append(*a, &common.KeyValue{Key: key, Value: v})
}

func (a *attributes) addText(key, value string) {
	if value != "" {
		a.addValue(key, textValue(value))
	}
}

func (a *attributes) addList(key string, values []string) {
	if len(values) == 0 {
		return
	}
	list := &common.ArrayValue{}
	for i, v := range values {
		if i == maxItems {
			list.Values = append(list.Values, textValue("…"))
			break
		}
		list.Values = append(list.Values, textValue(v))
	}
	a.addValue(key, &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}})
}

func (a *attributes) addCount(key string, n int64) {
	a.addValue(key, &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}})
}

func (a *attributes) addNonZero(key string, n int64) {
	if n != 0 {
		a.addCount(key, n)
	}
}

func (a *attributes) addIfTrue(key string, yes bool) {
	if yes {
		a.addValue(key, &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}})
	}
}

// textValue returns an untrusted text as one printable line.
func textValue(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text.Inline(s, maxUnits)}}
}
