package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/unstructured"
)

const (
	maxTraceLines = 400 // of a trace
	maxText       = 160 // of a body
)

// trace has the events and requests of a run for human readers.
type trace struct {
	isKept  bool // false: add does nothing, to save time. A failed run is repeated for its trace
	isDay   bool // note adds lines even if the trace is not kept: a day is not repeated
	mu      sync.Mutex
	start   time.Time
	lines   []string
	dropped int
}

func (s *trace) add(who, what string) {
	if !s.isKept {
		return
	}
	s.append(who, what)
}

// note adds a line about a process or the server.
func (s *trace) note(who, what string) {
	if s.isKept || s.isDay {
		s.append(who, what)
	}
}

func (s *trace) append(who, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) >= maxTraceLines {
		s.lines = s.lines[1:]
		s.dropped++
	}
	s.lines = append(s.lines, fmt.Sprintf("%9s  %-10s  %s", time.Since(s.start).Truncate(time.Millisecond), who, what))
}

// write adds a write with its result and the writer's stale objects.
func (s *trace) write(l *link, r request, result string, body []byte, stale []string) {
	if !s.isKept {
		return
	}
	text := "WRITES " + r.String()
	if len(body) > 0 {
		text += " " + shorten(body)
	}
	s.add(l.name(), text+": "+result)
	for _, line := range stale {
		s.add("", line)
	}
}

func (s *trace) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, "\n")
	if s.dropped > 0 {
		text = fmt.Sprintf("(%d earlier lines are left out)\n", s.dropped) + text
	}
	return text
}

func shorten(body []byte) string {
	text := string(body)
	var decoded any
	if json.Unmarshal(body, &decoded) == nil {
		if object, isObject := decoded.(map[string]any); isObject {
			delete(object, "apiVersion")
			delete(object, "kind")
		}
		if compact, err := json.Marshal(decoded); err == nil {
			text = string(compact)
		}
	}
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return text
}

// see records the state of an object received by the process. nil means absent.
func (p *process) see(id objectID, obj *unstructured.Object) {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	p.seen[id] = obj
}

func (p *process) seeList(r request, data []byte) {
	var list struct{ Items []map[string]any } // the items of built-in lists have no kind
	if json.Unmarshal(data, &list) != nil {
		return
	}
	var names []string
	for _, item := range list.Items {
		obj := &unstructured.Object{Object: item}
		p.see(idOf(r.resource, obj), obj)
		names = append(names, strings.Trim(obj.GetNamespace()+"/"+obj.GetName(), "/")+" "+describeState(obj))
	}
	p.run.trace.add(p.name, fmt.Sprintf("lists %s: %s", r.resource, strings.Join(append(names, fmt.Sprintf("%d in all", len(names))), ", ")))
}

// staleKnowledge describes the objects of which the process has seen an older state than the server's.
func (p *process) staleKnowledge() (lines []string) {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(p.seen), func(a, b objectID) int { return strings.Compare(a.String(), b.String()) }) {
		seen := p.seen[id]
		states := p.run.server.StatesOf(id.resource, id.namespace, id.name)
		if len(states) == 0 || isIncidental(id.resource) {
			continue
		}
		last := states[len(states)-1]
		isGone := last.Type == "DELETED"
		switch {
		case seen == nil && isGone, seen != nil && !isGone && seen.GetResourceVersion() == last.Object.GetResourceVersion():
			continue
		case seen == nil:
			lines = append(lines, fmt.Sprintf("    it saw no %s; the server has: %s", id, describeState(last.Object)))
		case isGone:
			lines = append(lines, fmt.Sprintf("    it saw %s %s, which is deleted", id, describeState(seen)))
		default:
			lines = append(lines, fmt.Sprintf("    it saw %s %s; the server has: %s", id, describeState(seen), describeState(last.Object)))
		}
	}
	return lines
}

// describeState returns the resourceVersion, the start of the UID and the deletion of obj.
func describeState(obj *unstructured.Object) string {
	text := "resourceVersion " + obj.GetResourceVersion()
	if uid := string(obj.GetUID()); len(uid) > 4 {
		text += ", uid " + uid[:4] + "…"
	}
	if obj.GetDeletionTimestamp() != nil {
		text += ", being deleted"
	}
	return "(" + text + ")"
}
