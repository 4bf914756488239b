package serve

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

const (
	minWatchTimeout = 30 * time.Minute // default timeout of a watch; randomized up to twice as long
	lastBookmark    = 2 * time.Second  // time between the last bookmark and the end of a watch
	maxBatch        = 100              // events written between flushes of the response
)

// watchStream is the state of a watch.
type watchStream struct {
	*call
	opts     *listOptions
	media    media
	events   *store.Watch
	since    int64 // events up to this revision are not sent
	sentAny  bool
	timeout  <-chan time.Time
	bookmark *time.Timer // nil without allowWatchBookmarks
	deadline time.Time
}

func (c *call) watch() error {
	m, found := negotiate(c.req, true, "Table", "PartialObjectMetadata")
	if !found {
		return c.errNotAcceptableWatch()
	}
	m.pretty = false
	opts, err := c.listOptions()
	if err != nil {
		return err
	}
	s := &watchStream{call: c, opts: opts, media: m}
	initial, err := s.open()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code == http.StatusGone {
		return s.fail(err)
	}
	if err != nil {
		return err
	}
	limit := time.Duration(minWatchTimeout.Seconds()*(1+rand.Float64())) * time.Second
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		limit = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	s.timeout = timer.C
	s.deadline = time.Now().Add(limit)
	if opts.AllowWatchBookmarks {
		s.bookmark = time.NewTimer(s.untilBookmark())
		defer s.bookmark.Stop()
	}
	s.run(initial)
	return nil
}

// open begins the watch at the requested resourceVersion. Without it, or with 0, the first events are the current objects;
// sendInitialEvents overrides this.
func (s *watchStream) open() (initial []store.Object, err error) {
	group := s.resource.Group
	plural := s.resource.Plural
	namespace := s.namespace()
	from := int64(0)
	if version := s.opts.ResourceVersion; version != "" && version != "0" {
		if from, err = parseVersion(version); err != nil {
			return nil, err
		}
	}
	sendInitial := from == 0
	if s.opts.SendInitialEvents != nil {
		sendInitial = *s.opts.SendInitialEvents
	}
	if sendInitial {
		if err := s.awaitRevision(from); err != nil {
			return nil, err
		}
		if initial, from, err = s.Store.List(group, plural, namespace, 0); err != nil {
			return nil, err
		}
	}
	s.events, err = s.Store.Watch(group, plural, namespace, from)
	if errors.Is(err, store.ErrFuture) {
		s.events, err = s.Store.Watch(group, plural, namespace, 0)
	}
	if errors.Is(err, store.ErrCompacted) {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.Store.Compacted()))
	}
	s.since = from
	return initial, err
}

// fail ends a watch with an ERROR event, like the API server's watch cache.
func (s *watchStream) fail(err error) error {
	s.header()
	s.send(watch.Error, statusOf(err))
	return nil
}

func (s *watchStream) header() {
	header := s.w.Header()
	header.Set("Content-Type", s.media.contentType())
	header.Set("Cache-Control", "no-cache, private")
	s.w.WriteHeader(http.StatusOK)
	s.flush()
}

func (s *watchStream) flush() { _ = http.NewResponseController(s.w).Flush() }

func (s *watchStream) run(initial []store.Object) {
	s.header()
	for _, obj := range initial {
		view, err := s.view(obj)
		if err != nil {
			s.sendError(err)
			return
		}
		if s.opts.matches(view) && !s.sendObject(watch.Added, view) {
			return
		}
	}
	if s.opts.SendInitialEvents != nil && *s.opts.SendInitialEvents && s.opts.AllowWatchBookmarks {
		if !s.sendBookmark(s.since, true) {
			return
		}
	}
	s.flush()
	for {
		batch, revision, more, err := s.events.Next(maxBatch)
		if err != nil {
			s.sendError(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, s.Store.Compacted())))
			return
		}
		if !s.fault.lateEvents(s.call, len(batch)) || !s.sendBatch(batch) || !s.await(more, revision) {
			return
		}
	}
}

func (s *watchStream) sendBatch(batch []store.Event) bool {
	for _, event := range batch {
		if event.Revision <= s.since {
			continue
		}
		kind, obj, err := s.visible(event)
		if err != nil {
			s.sendError(err)
			return false
		}
		if obj != nil && !s.sendObject(kind, obj) {
			return false
		}
	}
	if len(batch) > 0 {
		s.flush()
	}
	return true
}

// await blocks until there are more events. It returns false at the end of the watch, also when the version is no longer served.
func (s *watchStream) await(more <-chan struct{}, revision int64) bool {
	for {
		changed, isServed := s.served()
		if !isServed {
			select {
			case <-more:
				return true
			default:
				return false
			}
		}
		var bookmark <-chan time.Time
		if s.bookmark != nil {
			bookmark = s.bookmark.C
		}
		select {
		case <-more:
			return true
		case <-s.req.Context().Done():
			return false
		case <-s.timeout:
			return false
		case <-changed:
		case <-bookmark:
			if !s.sendBookmark(max(revision, s.since), false) {
				return false
			}
			s.flush()
			s.bookmark.Reset(s.untilBookmark())
		}
	}
}

// served reports whether the watched version is served. changed is closed by a change of the definitions.
func (s *watchStream) served() (changed <-chan struct{}, isServed bool) {
	if s.resource.Definition == nil {
		return nil, true
	}
	changed = s.Registry.Changed()
	return changed, s.Registry.Lookup(s.resource.Group, s.resource.Version, s.resource.Plural) != nil
}

// untilBookmark returns the time until the next bookmark. The last bookmark is sent lastBookmark before the end of the watch.
func (s *watchStream) untilBookmark() time.Duration {
	last := time.Until(s.deadline) - lastBookmark
	if last <= 0 {
		return max(time.Until(s.deadline)+time.Second, s.BookmarkInterval)
	}
	return min(s.BookmarkInterval, last)
}

// visible returns an event as seen through the watch's selector. An object entering the selection is ADDED, an object leaving it
// is DELETED. The returned object is nil for invisible events.
func (s *watchStream) visible(event store.Event) (watch.EventType, map[string]any, error) {
	last, err := s.view(event.Object)
	if err != nil || s.opts.selectsAll() {
		return event.Type, last, err
	}
	var current, previous map[string]any
	if event.Type != watch.Deleted && s.opts.matches(last) {
		current = last
	}
	if event.Previous != nil {
		view, err := s.view(event.Previous)
		if err != nil {
			return "", nil, err
		}
		if s.opts.matches(view) {
			previous = view
		}
	}
	switch {
	case current != nil && previous != nil:
		return watch.Modified, current, nil
	case current != nil:
		return watch.Added, current, nil
	case previous != nil && event.Type == watch.Deleted:
		return watch.Deleted, last, nil
	case previous != nil:
		return watch.Deleted, withRevision(previous, event.Revision), nil
	}
	return "", nil, nil
}

// view returns a stored object in the version of the watch.
func (s *watchStream) view(stored store.Object) (map[string]any, error) {
	return s.Writer.View(s.req.Context(), s.resource, stored)
}

// sendError ends the watch with an ERROR event.
func (s *watchStream) sendError(err error) {
	s.send(watch.Error, statusOf(err))
	s.flush()
}

func withRevision(obj map[string]any, revision int64) map[string]any {
	obj = maps.Clone(obj)
	metadata := nested.Map(obj, "metadata")
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	obj["metadata"] = metadata
	return obj
}

func (s *watchStream) sendBookmark(revision int64, isInitialEnd bool) bool {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if isInitialEnd {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return s.sendObject(watch.Bookmark, map[string]any{"kind": s.resource.Kind, "apiVersion": s.resource.APIVersion(), "metadata": metadata})
}

func (s *watchStream) sendObject(kind watch.EventType, obj map[string]any) bool {
	form, err := s.transform(s.media, obj, s.sentAny, kind)
	if err != nil {
		s.send(watch.Error, statusOf(err))
		return false
	}
	s.sentAny = true
	return s.send(kind, form)
}

// send writes an event. It returns false if the client has disconnected.
func (s *watchStream) send(kind watch.EventType, obj any) bool {
	line, err := encode(media{}, map[string]any{"type": kind, "object": obj})
	if err != nil {
		return false
	}
	_, err = s.w.Write(line)
	return err == nil
}
