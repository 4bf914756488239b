package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	jsoniter "github.com/json-iterator/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
)

// watchedSources are the list paths of CustomResourceDefinitions and APIServices. The name of each object ends in a group:
// widgets.example.com, v1.example.com. Only metadata is requested, because definitions are large.
var watchedSources = []string{definitionsPath, "/apis/apiregistration.k8s.io/v1/apiservices"}

const (
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

	// minWatchInterval is the minimum time between the starts of two watches. A server may close each watch immediately.
	minWatchInterval = time.Second
	// watchGrace is added to timeoutSeconds for the client's own timeout of a watch.
	watchGrace = 30 * time.Second
	// maxEvent bounds the bytes read for a watch event.
	maxEvent = 4 << 20
)

// sourceWatcher lists and watches one of watchedSources. It sends the group of every changed object to dirty.
type sourceWatcher struct {
	client *Client
	path   string
	dirty  chan<- string
	known  map[string]string // name → resourceVersion; nil before the first list
	// resourceVersion is the start of the next watch. If it is "", the next request is a list.
	resourceVersion string
	denials         retry.Denials
}

// run returns when ctx ends or the server rejects the list or watch. Not Found is retried: a starting server does not serve the
// path yet.
func (w *sourceWatcher) run(ctx context.Context) error {
	for failures := 0; ; {
		start := time.Now()
		verb := "watch"
		var err error
		if w.resourceVersion == "" {
			verb = "list"
			err = w.list(ctx)
		} else if err = w.watch(ctx); retry.IsExpired(err) || apierrors.IsNotFound(err) {
			w.resourceVersion = ""
			if retry.IsExpired(err) {
				err = nil
			}
		}
		transient := w.denials.Record(err)
		switch {
		case ctx.Err() != nil:
			return retry.ContextError(ctx)
		case retry.IsRejected(err) && !transient && !apierrors.IsNotFound(err):
			return fmt.Errorf("%s %s: %w", verb, w.path, err)
		}
		var delay time.Duration
		switch elapsed := time.Since(start); {
		case err != nil:
			failures++
			delay = retry.Jitter(ctx, runBackoff.Delay(failures))
		case verb == "watch" && elapsed < minWatchInterval:
			failures++
			delay = max(minWatchInterval-elapsed, retry.Jitter(ctx, runBackoff.Delay(failures)))
		case verb == "watch":
			failures = 0
		}
		if err := retry.Sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// markDirty sends the group of the object name to dirty. The core group cannot be requested alone: it becomes allGroups.
func (w *sourceWatcher) markDirty(ctx context.Context, name string) {
	_, group, _ := strings.Cut(name, ".")
	if group == "" || validateGroup(group) != nil {
		group = allGroups
	}
	select {
	case w.dirty <- group:
	case <-ctx.Done():
	}
}

// list compares the objects with w.known and marks the group of each difference.
func (w *sourceWatcher) list(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	if err := w.client.getKind(bounded, w.path, metadataList, "PartialObjectMetadataList", &list); err != nil {
		return err
	}
	if list.ResourceVersion == "" {
		return errors.New("no resourceVersion")
	}
	listed := make(map[string]string, len(list.Items))
	for i := range list.Items {
		listed[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	before := w.known
	w.known = listed
	w.resourceVersion = list.ResourceVersion
	if before == nil {
		// Neither the first snapshot nor this list covers the changes between the two.
		w.markDirty(ctx, allGroups)
		return nil
	}
	for name, version := range listed {
		if before[name] != version {
			w.markDirty(ctx, name)
		}
	}
	for name := range before {
		if _, isListed := listed[name]; !isListed {
			w.markDirty(ctx, name)
		}
	}
	return nil
}

// watch marks the groups of changed objects. It returns nil when the server ends the watch.
func (w *sourceWatcher) watch(ctx context.Context) error {
	// The timeout ends watches on dead connections. It is random so that clients do not reconnect in step.
	seconds := 240 + int(retry.Random(ctx, 119*time.Second)/time.Second)
	bounded, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchGrace)
	defer cancel()
	response, err := w.client.conn.Do(bounded, &transport.Request{Path: w.path, Query: url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {w.resourceVersion}, "timeoutSeconds": {strconv.Itoa(seconds)},
	}, Header: accept(metadata)})
	if err != nil {
		return sanitize.Error(err, maxError)
	}
	defer response.Body.Close()
	w.denials.Record(nil)
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
			return sanitize.Error(err, maxText)
		}
		if err := checkMemory(event.Object, limits.DefaultObject); err != nil {
			return err
		}
		if err := w.handle(ctx, event.Type, event.Object); err != nil {
			return err
		}
	}
}

func (w *sourceWatcher) handle(ctx context.Context, eventType watch.EventType, object []byte) error {
	if eventType == watch.Error {
		var status metav1.Status
		if err := codec.Unmarshal(object, &status); err != nil {
			return sanitize.Error(err, maxText)
		}
		w.resourceVersion = ""
		if err := error(&apierrors.StatusError{ErrStatus: status}); retry.IsDenied(err) || retry.IsExpired(err) {
			return sanitize.Error(err, maxError)
		}
		return fmt.Errorf("the server ended it: %s", quoted(status.Message))
	}
	var changed metav1.PartialObjectMetadata
	if err := codec.Unmarshal(object, &changed); err != nil {
		return sanitize.Error(err, maxText)
	}
	if changed.ResourceVersion == "" {
		return errors.New("an event has no resourceVersion")
	}
	w.resourceVersion = changed.ResourceVersion
	switch eventType {
	case watch.Added, watch.Modified:
		w.known[changed.Name] = changed.ResourceVersion
		w.markDirty(ctx, changed.Name)
	case watch.Deleted:
		delete(w.known, changed.Name)
		w.markDirty(ctx, changed.Name)
	default: // a bookmark
	}
	return nil
}
