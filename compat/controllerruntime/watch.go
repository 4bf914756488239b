package controllerruntime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/unstructured"
)

// watchingClient is a client.WithWatch.
type watchingClient struct {
	client.Client
	api *apiClient
}

// Watch watches the objects of a list's kind, in the list's form. The watch ends with ctx, after Stop, or when the server closes
// the stream.
func (w *watchingClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	raw := options.AsListOptions()
	raw.Watch = true
	return w.api.watch(ctx, list, options.Namespace, raw)
}

func (a *apiClient) watch(ctx context.Context, list client.ObjectList, namespace string, options *metav1.ListOptions) (watch.Interface, error) {
	mapping, err := a.mapping(ctx, list)
	if err != nil {
		return nil, err
	}
	accept := jsonMedia
	if formOf(list) == metadataForm {
		accept = metadataMedia
	}
	ctx, cancel := context.WithCancel(ctx)
	response, err := a.send(ctx, &request{ //nolint:bodyclose // The watch closes it.
		method: http.MethodGet, mapping: mapping, target: target{namespace: namespace, collection: true}, options: options, accept: accept,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	decoder := &watchDecoder{api: a, list: list, response: response, cancel: cancel, events: a.limits().NewWatchDecoder(response.Body)}
	return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), decoder, apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
}

// watchDecoder decodes events to objects in a list's form; it is a watch.Decoder.
type watchDecoder struct {
	api      *apiClient
	list     client.ObjectList
	response *http.Response
	cancel   context.CancelFunc
	closing  sync.Once
	events   *unstructured.WatchDecoder
}

func (d *watchDecoder) Close() {
	d.closing.Do(func() {
		d.cancel()
		_ = d.response.Body.Close()
	})
}

// Decode implements watch.Decoder.
func (d *watchDecoder) Decode() (watch.EventType, runtime.Object, error) {
	eventType, obj, err := d.decode()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.ErrUnexpectedEOF // the watcher expects the unwrapped error at the end of a stream
	}
	return eventType, obj, err
}

func (d *watchDecoder) decode() (watch.EventType, runtime.Object, error) {
	if formOf(d.list) == unstructuredForm {
		event, err := d.events.Next()
		if err != nil {
			return "", nil, err
		}
		if event.Type == watch.Error {
			status := &metav1.Status{}
			return event.Type, status, unstructured.Into(event.Object, status)
		}
		return event.Type, event.Object, nil
	}
	event, err := d.events.NextLazy()
	if err != nil {
		return "", nil, err
	}
	obj, err := d.api.decodeEvent(event, d.list)
	return event.Type, obj, err
}

func (a *apiClient) decodeEvent(event unstructured.WatchEvent[unstructured.Lazy], list client.ObjectList) (runtime.Object, error) {
	switch {
	case event.Type == watch.Error:
		status := &metav1.Status{}
		return status, unmarshal(event.Object.JSON(), status, a.limits())
	case formOf(list) == metadataForm:
		obj := &metav1.PartialObjectMetadata{}
		err := unmarshal(event.Object.JSON(), obj, a.limits())
		obj.TypeMeta = metav1.TypeMeta{} // as in client-go's metadata client
		return obj, err
	}
	gvk, err := apiutil.GVKForObject(list, a.scheme)
	if err != nil {
		return nil, err
	}
	obj, err := a.scheme.New(itemKind(gvk))
	if err != nil {
		return nil, err
	}
	return obj, a.decodeTyped(event.Object.JSON(), obj, a.limits())
}
