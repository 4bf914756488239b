package dynamic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// Wait waits until all of until hold at the same time for the object of that name, and returns the object as it was
// then; if it is gone, as it was last seen, nil if it never was. The object need not exist yet, and may go and come back.
//
// ctx is the time-out. When it ends, the error says what was unmet and is ctx's: errors.Is(err,
// context.DeadlineExceeded).
//
//	wait for deployments.apps "shop/web": condition Available is "False": MinimumReplicasUnavailable: Deployment does not …
//
// Wait reads the object once and then watches it, which takes the verbs get and watch; RBAC rules with resourceNames
// suffice. It goes on through watches that end or expire, through restarts of the server and while it cannot be
// reached, with growing delays of up to seven seconds. An error of [Matches] ends it, and what the server rejects, with 401
// or 403 for instance, if that lasts: for two seconds or, once there was a watch, five, since a server that starts denies
// every request for a moment. While the server does not serve the resource nothing holds, not even [Gone]; after five
// seconds of that Wait ends with an error that apierrors.IsNotFound knows.
func (r *Resource) Wait(ctx context.Context, name string, until ...Until) (*unstructured.Object, error) {
	w := &waiting{of: r, name: name, until: until}
	if err := w.check(); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		began := time.Now()
		w.moved = false
		done, err := w.round(ctx)
		if done {
			r.awaitDiscovery(ctx, w.seen.now)
			return w.last, nil
		}
		switch terminal := w.isTerminal(err); {
		case terminal && !w.notServedSince.IsZero():
			return nil, fmt.Errorf("wait for %s: the resource is not served: %w", w.target(), err)
		case terminal:
			return nil, fmt.Errorf("wait for %s: %w", w.target(), err)
		case ctx.Err() != nil:
			return nil, w.ended(ctx)
		case w.moved || time.Since(began) > waitBackoff().Max:
			n = 1
		}
		w.trouble = err
		if retry.Sleep(ctx, retry.Jitter(w.delay(n, err))) != nil {
			return nil, w.ended(ctx)
		}
	}
}

// delay is the delay after the n-th round in a row that brought nothing and ended with err.
func (w *waiting) delay(n int, err error) time.Duration {
	delay := waitBackoff().Delay(n)
	switch {
	case retry.IsDenied(err):
		return min(delay, maxDenialDelay)
	case !w.notServedSince.IsZero():
		return min(delay, maxAbsenceDelay)
	default:
		return delay
	}
}

func waitBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}

// waiting is one call of Wait.
type waiting struct {
	of    *Resource
	name  string
	until []Until

	seen    seen
	last    *unstructured.Object // as it was when it was there
	unmet   []string
	expired bool  // the object's resourceVersion is too old to watch from
	moved   bool  // the watch has brought something
	trouble error // that ended the last round

	watched        bool // the server has accepted a watch
	denials        retry.Denials
	notServedSince time.Time // since when every answer has been that the path is not served
}

// check refuses what cannot work.
func (w *waiting) check() (err error) {
	if _, err = w.of.objectPath("get", w.name); err != nil {
		return err
	}
	if _, err := w.request(""); err != nil {
		return err
	}
	if len(w.until) == 0 {
		return w.of.refuse("watch", w.name, "say what to wait for, such as Exists()")
	}
	for _, until := range w.until {
		switch {
		case until.wrong != nil:
			return w.of.refuse("watch", w.name, "%v", until.wrong)
		case until.unmet == nil:
			return w.of.refuse("watch", w.name, "an Until is empty: make it with a function such as Condition")
		}
	}
	return nil
}

// round reads the object and watches it, until the watch ends.
func (w *waiting) round(ctx context.Context) (done bool, err error) {
	again := w.expired
	if !again {
		if done, err = w.read(ctx); done || err != nil {
			return done, err
		}
	}
	from := ""
	if !again && w.seen.now != nil {
		from = w.seen.now.GetResourceVersion()
	}
	w.expired = false
	request, err := w.request(from)
	if err != nil {
		return false, err
	}
	response, err := w.of.do(ctx, request, single)
	if err != nil {
		return false, w.noteExpiry(err)
	}
	defer response.Body.Close()
	if again {
		// A watch from no resourceVersion begins with an object that there is; that there is none it does not say.
		if done, err = w.read(ctx); done || err != nil {
			return done, err
		}
	}
	return w.follow(request, response)
}

// request is the watch of the one object.
func (w *waiting) request(from string) (*transport.Request, error) {
	return w.of.watchRequest(&metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", w.name).String(), ResourceVersion: from,
	})
}

// read gets the object. That the server does not serve the path does not mean that the object does not exist.
func (w *waiting) read(ctx context.Context) (done bool, err error) {
	obj, err := w.of.Get(ctx, w.name, nil)
	if retry.IsObjectNotFound(err) {
		return w.evaluate(nil)
	}
	if err != nil {
		return false, err
	}
	return w.evaluate(obj)
}

// follow evaluates what a watch tells, until it ends.
func (w *waiting) follow(request *transport.Request, response *http.Response) (done bool, err error) {
	w.watched = true
	events, read := unstructured.NewWatchDecoder(response.Body), w.of.objects()
	for {
		event, err := read.event(events)
		if err != nil { // io.EOF, too: the server ends every watch some time
			return false, w.noteExpiry(w.of.brokenWatch(request, err))
		}
		w.moved = true
		switch event.Type {
		case watch.Added, watch.Modified:
			if w.knows(event.Object) {
				continue
			}
			done, err = w.evaluate(event.Object)
		case watch.Deleted:
			w.last = event.Object
			done, err = w.evaluate(nil)
		default: // a bookmark says nothing of the object
			continue
		}
		if done || err != nil {
			return done, err
		}
	}
}

// knows tells whether obj is no news: a watch may begin with what the server's cache had a moment before the read.
func (w *waiting) knows(obj *unstructured.Object) bool {
	if w.last == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), w.last.GetResourceVersion())
	return err == nil && order <= 0
}

// evaluate notes the object as it is now, nil if it is not there, and tells whether all that is waited for holds.
func (w *waiting) evaluate(obj *unstructured.Object) (done bool, err error) {
	w.trouble = nil
	w.seen.now = obj
	if obj != nil {
		w.last = obj
		if w.seen.first == "" {
			w.seen.first = obj.GetUID()
		}
	}
	w.unmet = nil
	for _, until := range w.until {
		text, err := until.unmet(w.seen)
		if err != nil {
			return false, &endingError{err}
		}
		if text != "" {
			w.unmet = append(w.unmet, text)
		}
	}
	return len(w.unmet) == 0, nil
}

func (w *waiting) noteExpiry(err error) error {
	w.expired = retry.IsExpired(err)
	return err
}

// target names the object in errors.
func (w *waiting) target() string {
	name := w.name
	if w.of.mapping.Namespaced {
		name = w.of.namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", w.of, name)
}

// ended is the error of a wait whose ctx has ended.
func (w *waiting) ended(ctx context.Context) error {
	unmet := strings.Join(w.unmet, "; ")
	if unmet == "" {
		unmet = "nothing was learned of it"
	}
	if w.trouble != nil {
		return fmt.Errorf("wait for %s: %s: %w; the last error: %w", w.target(), unmet, retry.ContextError(ctx), w.trouble)
	}
	return fmt.Errorf("wait for %s: %s: %w", w.target(), unmet, retry.ContextError(ctx))
}

// isTerminal reports whether the error of a round ends the wait. 401 and 403 do so when they have been returned for two
// seconds, or for five once the server has accepted a watch, and 404 for the path after five: a server that starts
// returns them for a moment.
func (w *waiting) isTerminal(err error) bool {
	var own *endingError
	var refused *RefusedError
	isOwn := errors.As(err, &own) || errors.As(err, &refused)
	w.denials.Grace = firstDenialGrace
	if w.watched {
		w.denials.Grace = 0
	}
	denied := w.denials.Transient(err)
	if isOwn || !retry.IsPathNotFound(err) {
		w.notServedSince = time.Time{}
	} else if w.notServedSince.IsZero() {
		w.notServedSince = time.Now()
	}
	switch {
	case isOwn:
		return true
	case denied:
		return false
	case !w.notServedSince.IsZero():
		return time.Since(w.notServedSince) >= notServedGrace
	default:
		return retry.IsRejected(err)
	}
}

// endingError is an error that is not the server's: of the caller's own function, or of an object that does not fit.
type endingError struct{ error }

func (e *endingError) Unwrap() error { return e.error }
