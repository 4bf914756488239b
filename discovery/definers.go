package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	jsoniter "github.com/json-iterator/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// shortestWatch is how long after the beginning of a watch the next one begins at the earliest.
	shortestWatch = time.Second
	// watchSlack is how much longer than it was asked to a server may take to end a watch.
	watchSlack = 30 * time.Second
	// maxEvent bounds one event of a watch, and what is read ahead.
	maxEvent = 8 << 20
)

var definerBackoff = retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}

// definerWatcher lists and watches one of the definers, and reports the group of every object that changes.
type definerWatcher struct {
	client  *Client
	path    string
	touched chan<- string
	known   map[string]string // resource versions by name
	// version is where a watch goes on, "" to list.
	version string
	listed  bool // at least once
	denials retry.Denials
}

// run goes on until ctx ends or the server denies the user to list or watch. A path that is not found may appear: a
// starting server lacks it for a moment.
func (w *definerWatcher) run(ctx context.Context) error {
	for failures := 0; ; {
		begun := time.Now()
		listing := w.version == ""
		err := w.step(ctx, listing)
		if ctx.Err() != nil {
			return retry.ContextError(ctx)
		}
		if w.isTerminal(err) {
			return fmt.Errorf("%s %s: %w", map[bool]string{true: "list", false: "watch"}[listing], w.path, err)
		}
		wait := time.Duration(0)
		switch {
		case err != nil:
			failures++
			wait = retry.Jitter(definerBackoff.Delay(failures))
		case !listing && time.Since(begun) < shortestWatch:
			// A server that ends every watch at once must not be asked without a break.
			failures++
			wait = max(shortestWatch-time.Since(begun), retry.Jitter(definerBackoff.Delay(failures)))
		case !listing:
			failures = 0
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (w *definerWatcher) step(ctx context.Context, listing bool) error {
	if listing {
		return w.list(ctx)
	}
	err := w.watch(ctx)
	if retry.IsExpired(err) || apierrors.IsNotFound(err) {
		w.version = ""
	}
	if retry.IsExpired(err) {
		return nil
	}
	return err
}

// isTerminal reports whether err ends Live.
func (w *definerWatcher) isTerminal(err error) bool {
	transient := w.denials.Transient(err)
	switch {
	case retry.IsDenied(err):
		return !transient
	case apierrors.IsNotFound(err), retry.IsExpired(err):
		return false
	}
	return retry.IsTerminal(err)
}

// touch passes on the group that an object of this name is about.
func (w *definerWatcher) touch(ctx context.Context, name string) {
	_, group, _ := strings.Cut(name, ".")
	if group == "" || validateGroup(group) != nil { // the core group, which is not asked for alone
		group = everything
	}
	select {
	case w.touched <- group:
	case <-ctx.Done():
	}
}

// list compares what there is with what is known, and reports each difference. Only metadata is asked for: definitions
// are long.
func (w *definerWatcher) list(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	answer, err := w.client.get(bounded, w.path, http.Header{"Accept": {
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	}})
	if err != nil {
		return unlessTimeout(bounded, err)
	}
	var list metav1.PartialObjectMetadataList
	if err := decodeKind(answer.body, "PartialObjectMetadataList", &list); err != nil {
		return fmt.Errorf("GET %s: %w", w.path, err)
	}
	if list.ResourceVersion == "" {
		return fmt.Errorf("GET %s: the answer has no resourceVersion", w.path)
	}
	first := !w.listed
	w.listed, w.version = true, list.ResourceVersion
	if first {
		// What changed between the first snapshot and this list is in neither.
		w.touch(ctx, "."+everything)
	}
	listed := map[string]bool{}
	for i := range list.Items {
		name, version := list.Items[i].Name, list.Items[i].ResourceVersion
		listed[name] = true
		if w.known[name] != version {
			w.known[name] = version
			if !first {
				w.touch(ctx, name)
			}
		}
	}
	for name := range w.known {
		if !listed[name] {
			delete(w.known, name)
			w.touch(ctx, name)
		}
	}
	return nil
}

// unlessTimeout hides that a request's own time-out ended it: that is no reason to end Live.
func unlessTimeout(bounded context.Context, err error) error {
	if bounded.Err() != nil {
		return errors.New("the server does not answer")
	}
	return err
}

// watch reports changes until the server ends the watch, and then returns nil.
func (w *definerWatcher) watch(ctx context.Context) error {
	// An end in time, and not for all clients at once, finds out about connections that are dead unnoticed.
	seconds := 240 + rand.IntN(120) //nolint:gosec // spread, not secrecy
	bounded, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchSlack)
	defer cancel()
	response, err := w.client.conn.Do(bounded, &transport.Request{Path: w.path, Query: url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {w.version}, "timeoutSeconds": {strconv.Itoa(seconds)},
	}, Header: http.Header{"Accept": {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}}})
	if err != nil {
		return unlessTimeout(bounded, printable(err))
	}
	defer response.Body.Close()
	w.denials.Transient(nil)
	body := &io.LimitedReader{R: response.Body, N: maxEvent}
	for events := codec.NewDecoder(body); ; body.N = maxEvent {
		var event struct {
			Type   watch.EventType     `json:"type"`
			Object jsoniter.RawMessage `json:"object"`
		}
		err := events.Decode(&event)
		switch {
		case errors.Is(err, io.EOF) && body.N > 0:
			return nil
		case err != nil:
			return unlessTimeout(bounded, fmt.Errorf("watch %s: %w", w.path, decodeError(err)))
		}
		if err := w.handle(ctx, event.Type, event.Object); err != nil {
			return err
		}
	}
}

// handle takes one event of a watch.
func (w *definerWatcher) handle(ctx context.Context, kind watch.EventType, object []byte) error {
	if kind == watch.Error {
		var status metav1.Status
		if err := codec.Unmarshal(object, &status); err != nil {
			return fmt.Errorf("watch %s: %w", w.path, decodeError(err))
		}
		w.version = ""
		if err := error(&apierrors.StatusError{ErrStatus: status}); retry.IsDenied(err) || retry.IsExpired(err) {
			return printable(err)
		}
		return fmt.Errorf("watch %s: the server ended it: %s", w.path, quoted(status.Message))
	}
	var changed metav1.PartialObjectMetadata
	if err := codec.Unmarshal(object, &changed); err != nil {
		return fmt.Errorf("watch %s: %w", w.path, decodeError(err))
	}
	if changed.ResourceVersion == "" {
		return fmt.Errorf("watch %s: an event has no resourceVersion", w.path)
	}
	w.version = changed.ResourceVersion
	switch kind {
	case watch.Added, watch.Modified:
		w.known[changed.Name] = changed.ResourceVersion
		w.touch(ctx, changed.Name)
	case watch.Deleted:
		delete(w.known, changed.Name)
		w.touch(ctx, changed.Name)
	default: // a bookmark
	}
	return nil
}
