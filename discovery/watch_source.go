package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/reflector"
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

	// maxEvent bounds the bytes read for a watch event.
	maxEvent = 4 << 20
)

type (
	// metadataEvent is an event without its object: name and version suffice.
	metadataEvent = reflector.Event[noObject]
	// noObject is always nil. With a pointer, programs share the reflector's machine code with other pointers.
	noObject = *struct{}
)

// sourceWatcher lists and watches one of watchedSources. It sends the group of every changed object to dirty.
type sourceWatcher struct {
	client *Client
	path   string
	dirty  chan<- string
}

// run returns when ctx ends or the server rejects the list or watch. Not Found is retried: a starting server does not serve the
// path yet.
func (w *sourceWatcher) run(ctx context.Context) error {
	isListed := false
	return reflector.Run(ctx, reflector.Options[noObject]{
		Source: w, ListFirst: true, FirstDenialGrace: denialGrace, MaxDelay: runBackoff.Max,
		Emit: func(event *metadataEvent) error {
			switch {
			case event.Type == reflector.Synced:
				// Neither the first snapshot nor the list covers the changes between the two.
				isListed = true
				w.markDirty(ctx, allGroups)
			case isListed && event.Name != "":
				w.markDirty(ctx, event.Name)
			}
			return nil
		},
		IsTerminal: func(err error) bool {
			_, isEvent := errors.AsType[*reflector.InvalidEventError](err)
			return retry.IsDenied(err) || retry.IsRejected(err) && !isEvent && !apierrors.IsNotFound(err)
		},
	})
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

// List implements reflector.Source.
func (w *sourceWatcher) List(ctx context.Context, handle func(*metadataEvent) error) (resourceVersion string, err error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	if err := w.client.getKind(ctx, w.path, metadataList, "PartialObjectMetadataList", &list); err != nil {
		return "", fmt.Errorf("list %s: %w", w.path, err)
	}
	if list.ResourceVersion == "" {
		return "", fmt.Errorf("list %s: no resourceVersion", w.path)
	}
	for i := range list.Items {
		event := newMetadataEvent(&list.Items[i])
		if err := handle(&event); err != nil {
			return "", err
		}
	}
	return list.ResourceVersion, nil
}

// Watch implements reflector.Source.
func (w *sourceWatcher) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[noObject], error) {
	stream, err := reflector.JSONWatch[noObject]{
		Conn: w.client.conn, Request: transport.Request{Path: w.path, Header: accept(metadata)}, MaxEvent: maxEvent, Decode: decodeMetadata,
	}.Open(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", w.path, sanitize.Error(err, maxError))
	}
	return stream, nil
}

// IdleError implements reflector.Source.
func (w *sourceWatcher) IdleError(cause error) error { return fmt.Errorf("list %s: %w", w.path, cause) }

func decodeMetadata(object []byte, event *metadataEvent) error {
	var changed metav1.PartialObjectMetadata
	if err := checkMemory(object, limits.DefaultObject); err != nil {
		return err
	}
	if err := codec.Unmarshal(object, &changed); err != nil {
		return sanitize.Error(err, maxText)
	}
	if changed.ResourceVersion == "" {
		return errors.New("an event has no resourceVersion")
	}
	*event = newMetadataEvent(&changed)
	return nil
}

func newMetadataEvent(object *metav1.PartialObjectMetadata) metadataEvent {
	return metadataEvent{
		Key: reflector.NewKey("", object.Name), Version: reflector.Version{UID: object.UID, ResourceVersion: object.ResourceVersion}, Type: watch.Added,
	}
}
