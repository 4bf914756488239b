package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// byteFault damages the first response at one byte. bound is when Follow must have recovered.
type byteFault struct {
	name  string
	apply func(body string, at int) (string, error) // the error that ends the body; nil means a stall
	bound time.Duration
	// undetectable faults yield other valid JSON: the state must be correct only after the next relist.
	undetectable bool
}

var errReset = errors.New("connection reset by peer")

func byteFaults(protobuf bool) []byteFault {
	const soon, stream = time.Minute, 12 * time.Minute // a watch lasts eleven minutes at most
	const relisted = 16 * time.Minute
	zero := byteFault{name: "zero", apply: func(body string, at int) (string, error) { return body[:at] + "\x00" + body[at+1:], io.EOF }, bound: soon}
	if protobuf { // which has zeros in strings
		zero.bound = relisted
		zero.undetectable = true
	}
	return []byteFault{
		{name: "closed", apply: func(body string, at int) (string, error) { return body[:at], io.EOF }, bound: soon},
		{name: "reset", apply: func(body string, at int) (string, error) { return body[:at], errReset }, bound: soon},
		{name: "stalled", apply: func(body string, at int) (string, error) { return body[:at], nil }, bound: stream},
		zero,
		{name: "flipped", apply: func(body string, at int) (string, error) {
			return body[:at] + string(body[at]^1) + body[at+1:], io.EOF
		}, bound: relisted, undetectable: true},
	}
}

// byteServer serves pods in a synctest bubble. Its first successful response is body, damaged by a fault; all others are
// intact.
type byteServer struct {
	byteCase // its body is damaged

	ending error
	stalls bool
	began  time.Time

	mu      sync.Mutex
	broken  bool // the fault is over
	expired bool // the first watch after the relist's time has had its 410
	open    int  // bodies that have not been closed
}

type podState struct{ uid, version string }

// relistAfter is the time after which the server's resourceVersions expire, once.
const relistAfter = 13 * time.Minute

func (s *byteServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		return discover(r, resources)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	if s.paged && initial {
		return s.respond(r, http.StatusUnprocessableEntity, strings.NewReader(scripted.StatusJSON(422, "Invalid"))), nil
	}
	if !s.broken {
		s.broken = true
		rest := io.Reader(errorBody{s.ending})
		if s.stalls {
			rest = s.rest(r, false)
		}
		first := s.respond(r, http.StatusOK, io.MultiReader(strings.NewReader(s.body), rest))
		if s.protobuf {
			first.Header.Set("Content-Type", protobufType)
		}
		return first, nil
	}
	var body strings.Builder
	version, _ := strconv.Atoi(query.Get("resourceVersion"))
	latest := len(s.events) - 1
	switch {
	case query.Get("watch") == "":
		var pods []string
		for _, name := range slices.Sorted(maps.Keys(s.final)) {
			pods = append(pods, podJSON(name, s.final[name].uid, s.final[name].version))
		}
		return s.respond(r, http.StatusOK, strings.NewReader(podList(strconv.Itoa(latest), pods...))), nil
	case initial:
		for name, state := range s.final {
			body.WriteString(scripted.Event("ADDED", podJSON(name, state.uid, state.version)))
		}
		body.WriteString(initialEventsEnd(strconv.Itoa(latest)))
	case !s.expired && time.Since(s.began) >= relistAfter:
		s.expired = true
		return s.respond(r, http.StatusOK, strings.NewReader(scripted.ExpiredEvent())), nil
	case version > latest:
		return s.respond(r, http.StatusGatewayTimeout, strings.NewReader(tooLargeVersion)), nil
	default:
		body.WriteString(strings.Join(s.events[version+1:], ""))
	}
	return s.respond(r, http.StatusOK, io.MultiReader(strings.NewReader(body.String()), s.rest(r, true))), nil
}

// rest is the idle rest of a body. It ends with its request or, with closes, at relistAfter.
func (s *byteServer) rest(r *http.Request, closes bool) io.Reader {
	var end <-chan time.Time
	if left := time.Until(s.began.Add(relistAfter)); closes && left > 0 {
		end = time.After(left)
	}
	return idleBody{r.Context(), end}
}

type idleBody struct {
	ctx context.Context
	end <-chan time.Time
}

func (b idleBody) Read([]byte) (int, error) {
	select {
	case <-b.end:
		return 0, io.EOF
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

type errorBody struct{ err error }

func (b errorBody) Read([]byte) (int, error) { return 0, b.err }

// respond makes a response whose body is counted until it is closed. The caller holds the lock.
func (s *byteServer) respond(r *http.Request, code int, body io.Reader) *http.Response {
	s.open++
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: &countedBody{Reader: body, server: s}, Request: r}
}

type countedBody struct {
	io.Reader
	server *byteServer
	once   sync.Once
}

func (b *countedBody) Close() error {
	b.once.Do(func() {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		b.server.open--
	})
	return nil
}

// byteCase is a first response without a fault, and the state after it.
type byteCase struct {
	paged    bool // WatchList is not supported
	protobuf bool // the first response is protobuf
	body     string
	final    map[string]podState
	events   []string // by resourceVersion, from 1
}

func byteCases(t *testing.T) map[string]byteCase {
	t.Helper()
	events := make([]string, 1, 64)
	final := map[string]podState{}
	record := func(kind, name, uid string) {
		version := strconv.Itoa(len(events))
		events = append(events, scripted.Event(kind, podJSON(name, uid, version)))
		if final[name] = (podState{uid, version}); kind == "DELETED" {
			delete(final, name)
		}
	}
	for i := range 3 {
		record("ADDED", fmt.Sprint("p", i), fmt.Sprint("u", i))
	}
	first := strings.Join(events[1:], "") + initialEventsEnd("3")
	for i := range 5 { // 20 events
		record("MODIFIED", "p0", "u0")
		record("ADDED", fmt.Sprint("q", i), fmt.Sprint("v", i))
		record("MODIFIED", fmt.Sprint("q", i), fmt.Sprint("v", i))
		if i%2 == 0 {
			record("DELETED", fmt.Sprint("q", i), fmt.Sprint("v", i))
		} else {
			record("MODIFIED", "p1", "u1")
		}
	}
	var pods, added []string
	objects := map[string]podState{}
	log := make([]string, 21)
	for i := range 20 {
		name := fmt.Sprint("p", i)
		state := podState{fmt.Sprint("u", i), strconv.Itoa(i + 1)}
		objects[name] = state
		pods = append(pods, podJSON(name, state.uid, state.version))
		added = append(added, scripted.Event("ADDED", podJSON(name, state.uid, state.version)))
		log[i+1] = added[i]
	}
	all := map[string]byteCase{
		"watch":     {body: first + strings.Join(events[4:], ""), final: final, events: events},
		"watchlist": {body: strings.Join(added, "") + initialEventsEnd("20"), final: objects, events: log},
		"list":      {paged: true, body: podList("20", pods...), final: objects, events: log},
	}
	for _, name := range []string{"watch", "watchlist", "list"} {
		encoded := all[name]
		encoded.protobuf = true
		encoded.body = protobufOf(t, encoded.body)
		all[name+", protobuf"] = encoded
	}
	return all
}

// TestFollow_EveryByte breaks the first response at each of its bytes, in each of these ways. Follow must reach
// the server's state within the bound, emit no change that contradicts the previous ones, and leave no goroutine (which
// synctest finds) and no response open.
func TestFollow_EveryByte(t *testing.T) {
	t.Parallel()
	step := memconn.Step(17) // a fault is in every part of every event
	for name, tc := range byteCases(t) {
		for i, fault := range byteFaults(tc.protobuf) {
			t.Run(name+"/"+fault.name, func(t *testing.T) {
				require.Less(t, len(tc.body), 32<<10)
				cases := 0
				for at := i % step; at < len(tc.body); at += step {
					cases++
					synctest.Test(t, func(t *testing.T) { breakAt(t, tc, fault, at) })
					if t.Failed() {
						t.Fatalf("at byte %d: %.40q", at, tc.body[at:])
					}
				}
				t.Logf("%d cases passed", cases)
			})
		}
	}
}

func breakAt(t *testing.T, tc byteCase, fault byteFault, at int) {
	body, ending := fault.apply(tc.body, at)
	tc.body = body
	server := &byteServer{byteCase: tc, ending: ending, stalls: ending == nil, began: time.Now()}
	conn, err := transport.New("http://bubble", &http.Client{Transport: server}, &transport.Options{Namespace: "home", Protobuf: tc.protobuf})
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	defer client.Close()
	limit := fault.bound + 30*time.Second // and nothing may change after the bound
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	view := map[string]podState{}
	synced := false
	right := time.Duration(0)
	for change, err := range resource(t, client, "pods").Follow(ctx, &dynamic.FollowOptions{Intern: at%2 == 1}) {
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			break
		}
		if change.Type == dynamic.Synced {
			assert.False(t, synced, "synced twice")
			synced = true
		}
		if change.Object != nil {
			name := strings.TrimPrefix(change.Object.GetNamespace()+"/"+change.Object.GetName(), "home/")
			state := podState{string(change.Object.GetUID()), change.Object.GetResourceVersion()}
			was, known := view[name]
			if !fault.undetectable {
				assert.Equal(t, change.Type != watch.Added, known, changeText(change))
				assert.True(t, change.Type != watch.Modified || was != state, "%s is repeated", changeText(change))
			}
			if view[name] = state; change.Type == watch.Deleted {
				delete(view, name)
			}
		}
		if synced && maps.Equal(view, server.final) {
			right = time.Since(server.began)
		}
	}
	assert.True(t, synced)
	assert.Equal(t, server.final, view)
	assert.LessOrEqual(t, right, fault.bound)
	server.mu.Lock()
	defer server.mu.Unlock()
	assert.Zero(t, server.open, "responses left open")
}
