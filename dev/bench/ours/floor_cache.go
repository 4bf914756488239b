//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/unstructured"
)

// podKey identifies a pod, like types.NamespacedName.
type podKey struct{ namespace, name string }

func keyOf(pod *unstructured.Object) podKey { return podKey{pod.GetNamespace(), pod.GetName()} }

// cache is the floor of cache: a map of the objects by key, built from the initial events of a watch.
func (f *floor) cache(ctx context.Context, m *measure.Meter) error {
	return f.cacheOf(ctx, m, func(*unstructured.Object) {})
}

// cacheOf is cache with transformed objects.
func (f *floor) cacheOf(ctx context.Context, m *measure.Meter, transform func(*unstructured.Object)) error {
	pods := map[podKey]*unstructured.Object{}
	err := m.Stage("sync", func() error {
		return f.initialEvents(ctx, func(line []byte) bool {
			eventType, pod := f.event(line)
			if eventType == "BOOKMARK" {
				return false
			}
			transform(pod)
			pods[keyOf(pod)] = pod
			return true
		})
	})
	if err != nil {
		return err
	}
	f.builder = builder{}
	m.Held()
	for _, pod := range pods {
		m.See(pod.GetName())
	}
	return nil
}

// cacheShared is the floor of the memory of cache: all equal maps, lists and strings are shared. Finding them takes more time and
// memory than any cache has.
func (f *floor) cacheShared(ctx context.Context, m *measure.Meter) error {
	f.builder.shared = map[string]any{}
	return f.cache(ctx, m)
}

// cacheStripped is the floor of the memory of cacheStripped.
func (f *floor) cacheStripped(ctx context.Context, m *measure.Meter) error {
	f.builder.shared = map[string]any{}
	return f.cacheOf(ctx, m, func(pod *unstructured.Object) { pod.SetManagedFields(nil) })
}

// metadataType is the media type of objects without spec and status.
const metadataType = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// cacheMetadata is the floor of cacheMetadata.
func (f *floor) cacheMetadata(ctx context.Context, m *measure.Meter) error {
	f.accept = metadataType
	return f.cache(ctx, m)
}

// cacheMetadataShared is the floor of the memory of cacheMetadata.
func (f *floor) cacheMetadataShared(ctx context.Context, m *measure.Meter) error {
	f.accept = metadataType
	return f.cacheShared(ctx, m)
}

// cacheMetadataJSON is the floor of the memory of cacheMetadataLazy.
func (f *floor) cacheMetadataJSON(ctx context.Context, m *measure.Meter) error {
	f.accept = metadataType
	return f.cacheLazy(ctx, m)
}

// cacheLazy is the floor of cacheLazy: a map of the objects' JSON by key.
func (f *floor) cacheLazy(ctx context.Context, m *measure.Meter) error {
	pods := map[podKey][]byte{}
	const before, bookmark = `{"type":"ADDED","object":`, `{"type":"BOOKMARK"`
	err := m.Stage("sync", func() error {
		return f.initialEvents(ctx, func(line []byte) bool {
			if bytes.HasPrefix(line, []byte(bookmark)) {
				return false
			}
			object := line[len(before) : len(line)-len("}\n")]
			kept := make([]byte, len(object)) // without spare capacity
			copy(kept, object)
			pods[podKey{memberOf(object, `"namespace":"`), memberOf(object, `"name":"`)}] = kept
			return true
		})
	})
	if err != nil {
		return err
	}
	m.Held()
	for key := range pods {
		m.See(key.name)
	}
	return nil
}

// memberOf returns the text after the first occurrence of a member's name. It is in the metadata: a server sends metadata first.
func memberOf(object []byte, name string) string {
	_, rest, _ := bytes.Cut(object, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(text)
}

// initialEvents calls handle with the lines of a watch with initial events, until handle returns false.
func (f *floor) initialEvents(ctx context.Context, handle func(line []byte) bool) error {
	const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	events, err := f.open(ctx, http.MethodGet, f.pods+query, nil)
	if err != nil {
		return err
	}
	defer events.Close()
	return eachLine(events, handle)
}

// eachLine calls handle with every line, until handle returns false.
func eachLine(events io.Reader, handle func(line []byte) bool) error {
	for lines := bufio.NewReaderSize(events, 1<<20); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("the watch ended: %w", err)
		}
		if !handle(line) {
			return nil
		}
	}
}

// event returns the type and the object of the event in line.
func (f *floor) event(line []byte) (eventType any, pod *unstructured.Object) {
	event := f.builder.build(line)
	fields, _ := event["object"].(map[string]any)
	return event["type"], &unstructured.Object{Object: fields}
}

// cacheEvent is the floor of cacheEvent: a map of the objects by key, changed by the events of a watch.
func (f *floor) cacheEvent(ctx context.Context, m *measure.Meter) error {
	pods := map[podKey]*unstructured.Object{}
	meta, err := f.page(ctx, "", func(pod *unstructured.Object) { pods[keyOf(pod)] = pod })
	if err != nil {
		return err
	}
	resourceVersion, _ := meta["resourceVersion"].(string)
	events, err := f.open(ctx, http.MethodGet, f.pods+"?watch=true&resourceVersion="+resourceVersion, nil)
	if err != nil {
		return err
	}
	defer events.Close()
	m.Ready()
	return eachLine(events, func(line []byte) bool {
		_, pod := f.event(line)
		pods[keyOf(pod)] = pod
		m.SeeChange(pod.GetName(), pod.GetAnnotations()[measure.Changed])
		return !m.Done()
	})
}
