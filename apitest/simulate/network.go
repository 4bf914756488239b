package simulate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/anykind/anykind/unstructured"
)

// link is the network between a client and the server. process is nil for the users.
type link struct {
	run     *run
	process *process
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The request waits for its arrival at the server, and may fail there.
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	r, isResource := parse(req)
	ctx := l.context(req)
	req = req.WithContext(ctx)
	if err := l.waitForServer(ctx); err != nil {
		return nil, err
	}
	if !isResource {
		return l.readPath(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	key := l.name() + " " + r.String()
	key += " #" + strconv.Itoa(l.run.scheduler.number(key))
	sent := time.Now()
	delay := latency
	if l.process != nil {
		delay += l.run.choices.delay(key, "requests")
		l.process.mayStop(key)
	}
	if err := l.run.scheduler.waitOf(ctx, l.process, key, delay); err != nil {
		return nil, err
	}
	if l.process != nil && l.process.stoppedUntil.After(sent) {
		sent = l.process.stoppedUntil // a stopped process sends when it continues
	}
	return l.arrive(req, r, key, body, sent)
}

// waitForServer blocks a user's request while the server is restarted: a failed step would fail the run.
func (l *link) waitForServer(ctx context.Context) error {
	for l.process == nil {
		down := l.run.remainingOutage()
		if down <= 0 {
			return nil
		}
		key := "user after a restart"
		if err := l.run.scheduler.wait(ctx, key+" #"+strconv.Itoa(l.run.scheduler.number(key)), down); err != nil {
			return err
		}
	}
	return nil
}

// readPath sends a request without a resource, such as discovery. It has no faults.
func (l *link) readPath(req *http.Request) (*http.Response, error) {
	if l.process != nil && time.Now().Before(l.process.stoppedUntil) {
		key := l.name() + " path"
		key += " #" + strconv.Itoa(l.run.scheduler.number(key))
		if err := l.run.scheduler.waitOf(req.Context(), l.process, key, latency); err != nil {
			return nil, err
		}
	}
	l.count(req, request{})
	response, err := l.base.RoundTrip(req)
	if err == nil && l.run.day != nil && req.URL.Path == "/version" {
		return l.run.day.upgraded(response)
	}
	return response, err
}

// count counts a request of a process during a day.
func (l *link) count(req *http.Request, r request) {
	if l.process == nil || l.run.day == nil {
		return
	}
	query := req.URL.Query()
	isList := r.verb == "list" && query.Get("continue") == "" || r.verb == "watch" && query.Get("sendInitialEvents") == "true"
	l.run.day.requests.add(l.run.scheduler.now(), isList)
}

// context returns the request's ctx, canceled also with the process.
func (l *link) context(req *http.Request) context.Context {
	if l.process == nil {
		return req.Context()
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	context.AfterFunc(l.process.ctx, func() { cancel(context.Cause(l.process.ctx)) })
	return ctx
}

func (l *link) name() string {
	if l.process == nil {
		return "user"
	}
	return l.process.name
}

// arrive lets the server handle a request. Arrivals are serialized.
func (l *link) arrive(req *http.Request, r request, key string, body []byte, sent time.Time) (*http.Response, error) {
	happens := noFault
	if l.process != nil {
		happens = l.process.fault(req, r, key, body)
		l.process.checkLease(r, key, sent)
	}
	l.count(req, r)
	l.run.addHistory(key, body)
	var stale []string
	if l.process != nil && r.isWrite() && !r.isLease() && l.run.trace.isKept {
		stale = l.process.staleKnowledge()
	}
	response := happens.response(req, r)
	switch {
	case happens == requestLost || happens == loseLease:
		l.record(r, happens.String(), body, stale)
		return nil, errLost()
	case response != nil:
		l.record(r, happens.String(), body, stale)
		return response, nil
	case l.process != nil && r.verb == "list" && req.URL.Query().Get("resourceVersion") == "0":
		l.readOldState(req, r, key)
	}
	response, err := l.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if r.verb == "watch" && response.StatusCode == http.StatusOK {
		return l.watch(response, r), nil
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	result := strconv.Itoa(response.StatusCode)
	if happens != noFault {
		result += ", " + happens.String()
	}
	l.record(r, result, body, stale)
	switch happens {
	case crashAfter:
		l.process.crash()
		return nil, errCrashed
	case responseLost:
		return nil, errLost()
	default:
	}
	l.observe(r, response.StatusCode, data)
	return response, nil
}

// readOldState lets the server respond to a list with resourceVersion=0 from an old state, like an API server's watch cache.
func (l *link) readOldState(req *http.Request, r request, key string) {
	if version := l.process.versionBehind(); version != "" {
		listAt(req, version)
		return
	}
	states := l.run.versions
	back := l.run.choices.choose("age of "+key, alternatives{"old state", []int{80, 80, 80, 40, 40, 40}})
	if back == 0 || len(states) == 0 {
		return
	}
	version := states[max(len(states)-1-back, 0)]
	l.run.choices.describe("age of "+key, fmt.Sprintf("%d writes ago", back))
	listAt(req, version)
	l.run.trace.add("server", fmt.Sprintf("returns the next list of %s with an old state, resourceVersion %s instead of %s", r.resource, version, states[len(states)-1]))
}

// record adds a write or a failed request to the trace.
func (l *link) record(r request, result string, body []byte, stale []string) {
	if l.process == nil && r.isWrite() || r.isLease() && result == "200" {
		return // traced with the step; renewals are too many
	}
	if r.isLease() {
		body = nil
	}
	if r.isWrite() {
		l.run.trace.write(l, r, result, body, stale)
	} else if result != "200" && result != "404" {
		l.run.trace.add(l.name(), fmt.Sprintf("%s: %s", r, result))
	}
}

// observe records the objects of a response as seen by the process.
func (l *link) observe(r request, code int, data []byte) {
	if r.isWrite() && code < 300 {
		l.run.noteVersion(data)
	}
	if l.process == nil || !l.run.trace.isKept && !r.isLease() {
		return
	}
	id := objectID{r.resource, r.namespace, r.name}
	switch {
	case r.verb == "list" && code == http.StatusOK:
		l.process.seeList(r, data)
	case code == http.StatusNotFound && r.name != "":
		l.process.see(id, nil)
	case code < 300 && r.subresource == "" || r.subresource == "status" && code < 300:
		obj := decode(data)
		if obj == nil || obj.GetKind() == "Status" {
			return
		}
		if r.isLease() {
			l.process.holdLease(r, obj)
			return
		}
		l.process.see(idOf(r.resource, obj), obj)
		if r.verb == "get" && obj.GetKind() != "CustomResourceDefinition" {
			l.run.trace.add(l.name(), "reads "+idOf(r.resource, obj).String()+" "+describeState(obj))
		}
	}
}

func decode(data []byte) *unstructured.Object {
	obj := &unstructured.Object{}
	if err := obj.UnmarshalJSON(data); err != nil {
		return nil
	}
	return obj
}
