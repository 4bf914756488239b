package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	anykind "github.com/anykind/anykind/unstructured"
)

// Watch implements dynamic.ResourceInterface. The channel delivers bookmarks, too. The server's error and a decoding error are
// ERROR events with a *metav1.Status. The channel is closed when the stream ends.
func (r *resourceClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	response, err := r.do(ctx, http.MethodGet, "", nil, &opts, "", nil) //nolint:bodyclose // The decoder closes it.
	if err != nil {
		return nil, err
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
	return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), &eventDecoder{
		events: r.limits().NewWatchDecoder(response.Body), body: response.Body,
	}, reporter), nil
}

// eventDecoder implements apimachinery's watch.Decoder.
type eventDecoder struct {
	events *anykind.WatchDecoder
	body   io.ReadCloser
	close  sync.Once
}

// Decode implements watch.Decoder.
func (d *eventDecoder) Decode() (watch.EventType, runtime.Object, error) {
	event, err := d.events.Next()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.ErrUnexpectedEOF // the watcher expects the unwrapped error at the end of a stream
	}
	if err != nil {
		return "", nil, err
	}
	if event.Type != watch.Error {
		return event.Type, event.Object, nil
	}
	status := &metav1.Status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(event.Object.Object, status); err != nil {
		return "", nil, fmt.Errorf("decode the status of an error: %w", err)
	}
	return event.Type, status, nil
}

// Close implements watch.Decoder.
func (d *eventDecoder) Close() { d.close.Do(func() { _ = d.body.Close() }) }
