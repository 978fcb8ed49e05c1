// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// languages are the SDK's names of languages.
var languages = map[string]string{"": "python", "python": "python", "javascript": "javascript", "js": "javascript",
	"typescript": "javascript", "ts": "javascript", "bash": "bash", "sh": "bash",
	"r": "r", "java": "java", "ruby": "ruby", "deno": "deno"}

// A codeContext is a context of a session. The SDK knows it by its id; a restart gives it another one.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
	name     string
	imported map[string]bool // what ran in it before its first code
}

// contexts are a sandbox's. The sandbox guards it.
type contexts struct {
	list    []codeContext
	made    int // of all, removed and restarted ones included
	cells   int
	running int // cells
}

// standing are the languages of the contexts that are always there.
var standing = []string{"python", "javascript", "bash"}

// newContexts returns those that are always there, whose ids are their languages.
func newContexts() contexts {
	c := contexts{made: len(standing)}
	for _, language := range standing {
		c.list = append(c.list, codeContext{ID: language, Language: language, Cwd: home, name: "main",
			imported: map[string]bool{}})
	}
	return c
}

func noLanguage(name string) error {
	return refuseRequest(notFound, "there is no interpreter for %q: use python, javascript, bash, r, java, ruby or deno", name)
}

// addOrReset makes a context, or gives another one of the session to the one with this id.
func (c *contexts) addOrReset(id, language, cwd string) (codeContext, error) {
	if c.made >= interpreter.MaxContexts {
		return codeContext{}, refuseRequest(resourceExhausted,
			"the sandbox has had %d contexts, removed and restarted ones included: create another sandbox", c.made)
	}
	c.made++
	return codeContext{id, language, cwd, rand.Text(), map[string]bool{}}, nil
}

func (c *contexts) findIndex(id string) int {
	for i, x := range c.list {
		if x.ID == id {
			return i
		}
	}
	return -1
}

// A cell is a request to execute code.
type cell struct {
	Code      string            `json:"code"`
	ContextID string            `json:"context_id"`
	Language  string            `json:"language"`
	EnvVars   map[string]string `json:"env_vars"`
}

// proposeCell returns what in proposes, the context, and how many cells came before it.
func (b *sandbox) proposeCell(in cell) (proposal.Proposal, codeContext, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	language, known := languages[strings.ToLower(in.Language)]
	if !known {
		return proposal.Proposal{}, codeContext{}, 0, noLanguage(in.Language)
	}
	p := proposal.Proposal{Code: dedentCode(in.Code), Language: language, Env: in.EnvVars}
	if _, stateless := interpreter.CommandOf(p); stateless && in.ContextID == "" {
		b.contexts.cells++
		return p, codeContext{}, b.contexts.cells, nil
	}
	i := b.contexts.findIndex(cmp.Or(in.ContextID, language))
	if i < 0 || in.Language != "" && in.ContextID != "" {
		return p, codeContext{}, 0, refuseRequest(notFound, "there is no context %q", in.ContextID)
	}
	p.Language, p.Context = b.contexts.list[i].Language, b.contexts.list[i].name
	b.contexts.cells++
	return p, b.contexts.list[i], b.contexts.cells, nil
}

func (s *Server) codeRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /execute", s.serveInSandbox(codePort, failText, executeCode))
	mux.HandleFunc("GET /contexts",
		s.contextCall(func(b *sandbox, _ string, _ contextRequest) (any, error) { return b.contexts.list, nil }))
	mux.HandleFunc("POST /contexts",
		s.contextCall(func(b *sandbox, _ string, in contextRequest) (any, error) { return b.addContext(in) }))
	mux.HandleFunc("DELETE /contexts/{id}", s.contextCall(func(b *sandbox, id string, _ contextRequest) (any, error) {
		i := b.contexts.findIndex(id)
		if i < len(standing) {
			return nil, refuseRequest(notFound, "there is no context %q that can be removed", id)
		}
		b.contexts.list = append(b.contexts.list[:i:i], b.contexts.list[i+1:]...)
		return nil, nil
	}))
	mux.HandleFunc("POST /contexts/{id}/restart",
		s.contextCall(func(b *sandbox, id string, _ contextRequest) (any, error) {
			i := b.contexts.findIndex(id)
			if i < 0 {
				return nil, refuseRequest(notFound, "there is no context %q", id)
			}
			again, err := b.contexts.addOrReset(id, b.contexts.list[i].Language, b.contexts.list[i].Cwd)
			if err == nil {
				b.contexts.list[i] = again
			}
			return nil, err
		}))
}

type contextRequest struct {
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

// contextCall serves a request about contexts, with the sandbox locked.
func (s *Server) contextCall(f func(b *sandbox, id string, in contextRequest) (any, error)) http.HandlerFunc {
	return s.serveInSandbox(codePort, failText, func(w http.ResponseWriter, r *http.Request, b *sandbox) error {
		data, err := readBody(w, r, maxAPI)
		if err != nil {
			return err
		}
		in, err := decodeStrictly[contextRequest](data)
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		out, err := f(b, r.PathValue("id"), in)
		if err == nil {
			sendAnswer(w, http.StatusOK, out)
		}
		return err
	})
}

func (b *sandbox) addContext(in contextRequest) (any, error) {
	language, known := languages[strings.ToLower(in.Language)]
	if !known {
		return nil, noLanguage(in.Language)
	}
	if _, keeps := interpreter.LanguageOf(language); !keeps {
		return nil, refuseRequest(notFound, "code of %s keeps no state: run it without a context", language)
	}
	at, err := findPlace(in.Cwd)
	if err != nil {
		return nil, err
	}
	c, err := b.contexts.addOrReset(rand.Text(), language, at.shown)
	if err == nil {
		b.contexts.list = append(b.contexts.list, c)
	}
	return c, err
}

// eventWriter sends the events of one execution, one JSON object a line. Its client may have gone.
type eventWriter struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (l *eventWriter) sendEvent(event map[string]any) {
	data, err := json.Marshal(event)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = writeWithDeadline(l.w, append(data, '\n'))
}

func (l *eventWriter) sendOutput(stream string, data []byte) {
	l.sendEvent(map[string]any{"type": stream, "text": strings.ToValidUTF8(string(data), "\uFFFD"),
		"timestamp": time.Now().UnixNano()})
}

func (l *eventWriter) sendDisplay(d proposal.Display) { l.sendEvent(resultOf(d)) }

func (l *eventWriter) sendError(name, value, traceback string) {
	l.sendEvent(map[string]any{"type": "error", "name": name, "value": value,
		"traceback": cmp.Or(traceback, name+": "+value)})
}

// executeCode runs code and sends what it shows. What is not acceptable as code is an error of the
// code, because the SDK shows its text.
func executeCode(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	data, err := readBody(w, r, maxCode)
	if err != nil {
		return err
	}
	in, err := decodeStrictly[cell](data)
	if err != nil {
		return err
	}
	p, at, count, err := b.proposeCell(in)
	if err != nil {
		return err
	}
	if err := b.waitForSetUp(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := &eventWriter{w: w}
	out.sendEvent(map[string]any{"type": "number_of_executions", "execution_count": count})
	if strings.TrimSpace(in.Code) != "" { // nothing is no proposal
		out.runCode(r.Context(), b, p, at)
	}
	b.cutOff()
	out.sendEvent(map[string]any{"type": "end_of_execution"})
	return nil
}

func (l *eventWriter) runCode(ctx context.Context, b *sandbox, p proposal.Proposal, at codeContext) {
	b.countCells(1)
	defer b.countCells(-1)
	if at.ID != "" && !l.prepareContext(ctx, b, p, at) {
		return
	}
	shows := newPrinter(l.sendOutput, l.sendDisplay)
	language, how := p.Language, b.session.Do
	p, restore := b.exportForCell(ctx, p)
	defer restore()
	if command, stateless := interpreter.CommandOf(p); stateless {
		p, how = command, b.runInBackground
	}
	r, err := b.proposeAfterSetUp(gate.WithOutput(ctx, shows.printChunk), how, p)
	missing := interpreter.MissingError(language, r)
	var stop *proposal.StopError
	switch {
	case errors.As(err, &stop) && stop.Code == "session.proposal":
		l.sendError("InvalidCode", refusalOf(err).message, "")
	case b.ctx.Err() != nil: // see cutOff
	case err != nil:
		l.sendError("SandboxFailed", refusalOf(err).message, "")
	case !r.Runnable():
		v := reasonsOf(r)
		l.sendError(v.name, v.joinLines(), strings.Join(v.lines, "\n"))
	case missing != nil:
		l.sendError("NotInstalled", refusalOf(missing).message, "")
	default:
		shows.printRest(r)
		if x := *r.Result; x.Exception == nil && (x.Status != proposal.Exited || x.ExitCode != 0) {
			b.forgetState(at) // its interpreter may have ended
		}
		l.sendFailure(*r.Result)
	}
}

// sendFailure sends how code ended that did not succeed.
func (l *eventWriter) sendFailure(x proposal.Result) {
	switch {
	case x.Exception != nil:
		l.sendError(x.Exception.Name, x.Exception.Value, x.Exception.Traceback)
	case x.Status != proposal.Exited:
		l.sendError("ExecutionStopped", describeEnd(x), "")
	case x.ExitCode != 0:
		l.sendError("ExitCode", describeEnd(x), "")
	}
}

// formNames are the SDK's names of a result's forms. Others keep their MIME type.
var formNames = map[string]string{"text/plain": "text", "text/html": "html", "text/markdown": "markdown",
	"image/svg+xml": "svg", "image/png": "png",
	"image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript", chartType: "chart"}

// chartType is the type of the data of a chart, as prelude.py makes it.
const chartType = "application/vnd.fumehood.chart+json"

const tableType = "application/vnd.dataresource+json"

// resultOf returns d as the SDK reads it. What is JSON is sent as such.
func resultOf(d proposal.Display) map[string]any {
	event := map[string]any{"type": "result", "is_main_result": d.Value}
	for kind, form := range d.Forms {
		if kind == "text/plain" {
			form = unquoteText(form)
		}
		if !strings.Contains(kind, "/") {
			continue // not a MIME type, and perhaps a name of the event's own
		}
		var value any = form
		if strings.HasSuffix(kind, "json") && json.Valid([]byte(form)) {
			value = json.RawMessage(form)
		}
		event[cmp.Or(formNames[kind], kind)] = value
		if kind == tableType {
			if columns := columnsOf(form); columns != nil {
				event["data"] = columns
			}
		}
	}
	return event
}

// columnsOf returns a table without its index as a list of values for each column; nil if it is not one.
func columnsOf(table string) map[string][]any {
	var t struct {
		Schema struct {
			Fields     []struct{ Name string }
			PrimaryKey []string
		}
		Data []map[string]any
	}
	if json.Unmarshal([]byte(table), &t) != nil || len(t.Schema.Fields) == 0 {
		return nil
	}
	columns := map[string][]any{}
	for _, f := range t.Schema.Fields {
		if !slices.Contains(t.Schema.PrimaryKey, f.Name) { // the index
			columns[f.Name] = []any{}
		}
	}
	for _, row := range t.Data {
		for name := range columns {
			columns[name] = append(columns[name], row[name])
		}
	}
	return columns
}
